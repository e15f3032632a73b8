"""What docs/reliability.md promises has the tests that it names; and promises that have no other file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from chaos import definition, truth, write_customers
from paths import ROOT

from tuning import TuneRunner

PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
ROWS = [row.strip("|").split("|") for row in re.findall(r"^\| (?!promise|---).*", PAGE, flags=re.M)]


@pytest.mark.parametrize(("promise", "tests"), ROWS, ids=lambda cell: cell.strip()[:40])
def test_a_promise_names_tests_that_are_there(promise: str, tests: str) -> None:
    words = re.findall(r"`((?:[a-z_]+/)*test_[a-z0-9_.]+)`", tests)
    there: set[str] = set()
    for file in [word for word in words if word.endswith(".py")]:
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        there |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    named = {word for word in words if not word.endswith(".py")}
    assert named, promise
    assert named <= there


def test_the_number_of_workers_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More workers are more shards: other neighbours, another order. Beside each other they run in test_crashes.py."""
    monkeypatch.setattr("tuning.data.balancing.SHARDS_PER_SLOT", 1)
    write_customers(tmp_path / "data", 5)
    found = []
    for slots in (1, 2, 5):
        runner = TuneRunner(**definition(tmp_path / "data", slots=slots, algorithm="optuna", trials=6))
        found.append(
            (len(runner.plan().shards), truth(runner.run(str(tmp_path / f"{slots}"), in_process=True, progress=False)))
        )
    assert [shards for shards, _ in found] == [1, 2, 5]
    assert found[0][1] == found[1][1] == found[2][1]
