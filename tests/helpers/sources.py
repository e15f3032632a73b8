"""The program's own source, for tests of what stands in it: each file is parsed once per process."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from paths import ROOT

PACKAGES = ("tuning", "search_spaces", "schedulers")


def source_files() -> list[Path]:
    """Every Python file of the three packages, in order."""
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file; callers must not change it."""
    return ast.parse(path.read_text(encoding="utf-8"))
