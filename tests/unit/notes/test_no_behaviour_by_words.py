"""Nothing in the program behaves by the words of a note, a reason or an error."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from paths import ROOT
from sources import parsed, source_files

#: Names that hold a note, a reason, an error or the text of one.
TOLD = {"error", "failure", "note", "notes", "reason", "reasons", "refusal", "refused", "why"}
LOOKED_INTO = {
    *("startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "rsplit"),
    *("splitlines", "find", "index", "count", "replace"),
}
MATCHED = {"search", "match", "fullmatch", "sub", "findall", "finditer"}
SEPARATOR = "; "  # stood between notes in one text

#: Where a text of another program is looked into, and why.
ALLOWED = {
    ("basics/wording.py", "str(error).splitlines()"): "one line of many of a library's error is shown",
    ("data/file_access.py", "OPENED.sub(lambda _: shown, str(error))"): "Arrow's names the descriptor and not the file",
    ("storage/s3.py", "words in str(error)"): "Arrow has one class for all errors of S3, and gives no code",
}


def name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def is_told(node: ast.expr) -> bool:
    """Whether an expression is a note, a reason or an error, or its text."""
    if isinstance(node, ast.Call) and name(node.func) in {"str", "strip", "rstrip", "lower", "casefold", "texts"}:
        return any(map(is_told, [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]))
    return name(node) in TOLD or (isinstance(node, ast.BoolOp) and any(map(is_told, node.values)))


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def compares_words(how: ast.cmpop, left: ast.expr, right: ast.expr) -> bool:
    if isinstance(how, ast.In | ast.NotIn):
        return is_told(right) and (is_text(left) or isinstance(right, ast.Call))
    some = any(is_text(each) and getattr(each, "value", True) for each in (left, right))  # "" says that there is none
    return isinstance(how, ast.Eq | ast.NotEq) and some and (is_told(left) or is_told(right))


def looks_into_words(node: ast.AST) -> bool:
    """Whether an expression splits, joins, searches or compares the text of a note, a reason or an error."""
    if isinstance(node, ast.Compare):
        return any(map(compares_words, node.ops, [node.left, *node.comparators], node.comparators))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    inside = [each for argument in node.args for each in ast.walk(argument) if isinstance(each, ast.expr)]
    joined = isinstance(node.func.value, ast.Constant) and node.func.value.value == SEPARATOR
    return (
        (node.func.attr in LOOKED_INTO and is_told(node.func.value))
        or (node.func.attr in MATCHED and any(map(is_told, node.args)))
        or (node.func.attr == "split" and any(ast.unparse(each) == repr(SEPARATOR) for each in node.args))
        or (node.func.attr == "join" and joined and any(map(is_told, inside)))
    )


def found() -> Iterator[tuple[str, str]]:
    """The expressions that look into words, each with its file."""
    for path in source_files():
        if path.is_relative_to(ROOT / "tuning"):
            place = path.relative_to(ROOT / "tuning").as_posix()
            yield from ((place, ast.unparse(node)) for node in ast.walk(parsed(path)) if looks_into_words(node))


def test_nothing_looks_into_the_words_of_notes_reasons_or_errors() -> None:
    assert set(found()) == ALLOWED.keys()


@pytest.mark.parametrize(
    "line",
    [
        "notes.split('; ')",
        "'; '.join(str(each) for each in study.notes)",
        "study.reason.startswith('no trial')",
        "'is not there' in str(error)",
        "why == 'the pool is off'",
        "re.search(PATTERN, str(note))",
        "reason.removeprefix('customer ')",
    ],
)
def test_each_way_to_look_into_them_is_seen(line: str) -> None:
    assert any(map(looks_into_words, ast.walk(ast.parse(line))))


@pytest.mark.parametrize(
    "line", ["note.code in CODES", "reason == ''", "names.split(',')", "note in notes", "'a' in names"]
)
def test_others_are_let_pass(line: str) -> None:
    assert not any(map(looks_into_words, ast.walk(ast.parse(line))))
