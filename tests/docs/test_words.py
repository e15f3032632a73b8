"""One word for one thing: what docs/architecture.md names has no second name, and a name means one thing."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from paths import ROOT
from sources import parsed

from tuning.basics.wording import amount

# Names of before, and what is said now; words of English are refused as names only, with their capital.
RETIRED = {
    "(?i:Workshop)": "worker context",
    "Flight": "progress marker",
    "flights/": "in_progress/",
    "last words": "the stack at the crash",
    "Bench": "open studies",
    "(?i:Shelf)": "shared tables",
    "Begun": "owned run",
    "Standing": "recorded state",
    "survey": "read_state",
    "Filing": "background writer",
    "(?i:Travelling)": "portable function",
    "StudyLoop": "recorded study",
    "LiveStudy": "spread study",
}
# Where an epoch could only be the ownership of a run, which is a term; elsewhere models train by epochs.
OWNERSHIP = ["records", "runs", "execution", "driver", "tracking"]
PACKAGES = ["tuning", "search_spaces", "schedulers"]
# Such a word needs a noun: whose, said to whom, gone where?
HALF_SENTENCES = {
    "their",
    "theirs",
    "whose",
    "his",
    "hers",
    "ours",
    "yours",
    "mine",
    "apart",
    "told",
    "said",
    "made",
    "keeper",
    "begun",
    "gone",
    "left",
    "without",
    "until",
    "unless",
    "since",
    "while",
    "because",
}
# One searches for a model; a customer, a model, a study are not searched. (A space may be, and the text of a page.)
WHO = r"(?:customers?|models?|stud(?:y|ies)|famil(?:y|ies)|tables?|everybody|everyone|everything|them|it)"
WHICH = r"(?:(?:all|every|each|an?|the|same|this|built-in|million|its|their|your|our|other|these|those|\d+)\s+){0,3}"
IS = r"(?:is|are|was|were|be|cannot be|can be|has been|have been)"
SEARCHED = re.compile(
    rf"\bsearch(?:es|ed|ing)?\s+(?:{WHICH}{WHO}|anew)\b(?!['’])"
    rf"|\b(?:{WHO}|they|others|data|what)\s+{IS}\s+(?:not\s+)?searched\b(?! for)"
    rf"|\b{WHO}\s+(?:to search|that nobody searche[sd])\b(?! for| among| in\b| on\b| further)",
    re.IGNORECASE,
)
# Values of f-strings that stand before a plural without `amount`: not a number, or never 1. A limit in capitals isn't.
SEVERAL = {
    "len(self.values)": "more than are shown, or than can be",
    "row['trials']": "said otherwise of a single one",
}


@cache
def texts() -> list[Path]:
    code = [path for top in ("tuning", "tests") for path in (ROOT / top).rglob("*.py")]
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    return [path for path in [*code, *pages] if path != Path(__file__).resolve()]


@cache
def content(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("word", RETIRED)
def test_a_retired_word_is_gone(word: str) -> None:
    pattern = re.compile(rf"\b{word}(?!\w)")
    found = [str(path.relative_to(ROOT)) for path in texts() if pattern.search(content(path))]
    assert found == [], f"say {RETIRED[word]}"


def test_one_searches_for_a_model() -> None:
    code = [path for top in (*PACKAGES, "examples", "benchmarks") for path in (ROOT / top).rglob("*.py")]
    lessons = (ROOT / "examples").glob("*.ipynb")
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in {*texts(), *code, *lessons}
        for match in SEARCHED.finditer(re.sub(r'(\\n)?",?\n\s+f?"', "", content(path)))
    ]
    assert sorted(found) == [], "search for a model; tune, train, start again"


def test_a_run_has_terms_and_a_model_epochs() -> None:
    files = [path for package in OWNERSHIP for path in (ROOT / "tuning" / package).rglob("*.py")]
    found = [
        f"{path.name}: {line.strip()}"
        for path in [*files, ROOT / "docs" / "reliability.md"]
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search("epoch", line, re.IGNORECASE)
    ]
    assert found == []


@cache
def names_of(package: str, kind: type[ast.AST]) -> list[tuple[str, str]]:
    return [
        (name, f"{path.relative_to(ROOT)}:{node.lineno}")
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, kind) and (name := getattr(node, "name", None) or _alias(node))
    ]


def _alias(node: ast.AST) -> str:
    """The name of a type alias, which is written as a constant with the capital of a class."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    name = target.id if isinstance(target, ast.Name) else ""
    return name if re.match("_?[A-Z][a-z]", name) else ""


def test_a_class_has_its_name_alone() -> None:
    places: dict[str, list[str]] = {}
    for package in PACKAGES:
        for name, place in names_of(package, ast.ClassDef):
            places.setdefault(name, []).append(place)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_type_alias_has_its_name_alone(package: str) -> None:
    """Of one package: the three import nothing from each other, and may each name what all mean, such as `Mode`."""
    classes = {name for each in PACKAGES for name, _ in names_of(each, ast.ClassDef)}
    aliases = [name for kind in (ast.Assign, ast.AnnAssign) for name, _ in names_of(package, kind)]
    assert [name for name in aliases if name in classes or aliases.count(name) > 1] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_function_is_half_a_sentence(package: str) -> None:
    names = names_of(package, ast.FunctionDef)
    assert [found for found in names if found[0].strip("_").lower() in HALF_SENTENCES] == []


def _counted(node: ast.AST) -> str:
    """What a call of `amount` counts."""
    given = node.args[1] if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "amount" else None
    return str(given.value) if isinstance(given, ast.Constant) else ""


def test_a_number_and_its_noun_are_said_by_amount() -> None:
    """So that `1 trials` cannot be read: of every noun that is counted anywhere, and of one that a variable names."""
    nodes = [node for top in PACKAGES for path in (ROOT / top).rglob("*.py") for node in ast.walk(parsed(path))]
    plurals = {amount(2, noun).removeprefix("2 ") for noun in map(_counted, nodes) if noun}
    counted = re.compile(rf"\{{([^{{}}]+)\}} (?:{'|'.join(sorted(plurals))}|\{{\w*noun\w*\}}s)(?![\w/'-])")
    found = set()
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = [
                str(each.value) if isinstance(each, ast.Constant) else f"{{{_bare(each)}}}" for each in node.values
            ]
            found |= {value for value in counted.findall("".join(parts)) if not re.fullmatch("[A-Z_]+", value)}
    assert found == set(SEVERAL)


def _bare(part: ast.expr) -> str:
    """What a part of an f-string shows, without braces of its own."""
    return re.sub("[{}]", "", ast.unparse(part.value)) if isinstance(part, ast.FormattedValue) else ""
