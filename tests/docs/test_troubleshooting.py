"""docs/troubleshooting.md: every message is one that the program has, and reasons are those of the catalogue."""

from __future__ import annotations

import ast
import re

import pytest
from paths import ROOT
from reason_table import written
from sources import parsed, source_files

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """The tables whose first column is a message."""
    tables = [table for table in text.split("\n\n") if "| message |" in table]
    lines = [line for table in tables for line in table.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def message(cell: str) -> str:
    return cell.strip("` ") if not cell.startswith("``") else cell.strip("`").strip()


def said(node: ast.expr) -> str:
    """A text of the code, with … where it has a value."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else "…"
    return "".join(map(said, node.values)) if isinstance(node, ast.JoinedStr) else "…"


@pytest.fixture(scope="module")
def texts() -> str:
    """All texts of the program, a line each."""
    trees = [parsed(path) for path in source_files()]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant | ast.JoinedStr)]
    return "\n".join(said(node).replace("\n", " ") for node in nodes)


@pytest.mark.parametrize("row", rows(PAGE), ids=lambda row: message(row[0]))
def test_a_message_is_one_of_the_program(row: list[str], texts: str) -> None:
    assert len(row) == 3
    parts = [re.escape(part.strip()) for part in message(row[0]).split("…") if part.strip()]
    assert re.search(".*".join(parts), texts), row[0]


def test_reasons_and_notes_are_those_of_the_catalogue() -> None:
    assert PAGE.count("<!-- reasons -->") == 1
    assert written(PAGE) == PAGE, "python docs/reason_table.py writes what belongs there"
