"""One word for one thing: what docs/architecture.md names has no second name, and a name means one thing."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from paths import ROOT
from sources import parsed

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
PACKAGES = ["tuning", "search_spaces", "schedulers"]


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


def test_a_class_has_its_name_alone() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
