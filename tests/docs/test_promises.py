"""What docs/reliability.md promises has the tests that it names; and promises that have no other file."""

from __future__ import annotations

import ast
import re

import pytest
from paths import ROOT
from sources import parsed

PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
ROWS = [row.strip("|").split("|") for row in re.findall(r"^\| (?!promise|---).*", PAGE, flags=re.M)]


@pytest.mark.parametrize(("promise", "tests"), ROWS, ids=lambda cell: cell.strip()[:40])
def test_a_promise_names_tests_that_are_there(promise: str, tests: str) -> None:
    words = re.findall(r"`((?:[a-z_]+/)*test_[a-z0-9_.]+)`", tests)
    there: set[str] = set()
    for file in [word for word in words if word.endswith(".py")]:
        tree = parsed(ROOT / "tests" / file)
        there |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    named = {word for word in words if not word.endswith(".py")}
    assert named, promise
    assert named <= there
