"""Poison of every kind at one per cent of 2,000 customers on real Ray workers: the others notice nothing of it."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
import yaml
from chaos import POISON, POISONED_FILES, SPACE, command, figure, truth, write_hazards

from tuning import RunResult

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.ray, pytest.mark.timeout(3600)]
KINDS = (*POISON, *POISONED_FILES)
CUSTOMERS = 2000
POISONED = {100 * position + 50: KINDS[position % len(KINDS)] for position in range(CUSTOMERS // 100)}
LIMITS = {"trial_seconds": 2.0, "memory_gb": 1.0, "max_rows": 50}
CRASHING = ("segfault", "exit", "loop", "loop_in_c", "abort")


def _run(folder: Path, customers: int, poisoned: dict[int, str], **limits: float) -> tuple[RunResult, float]:
    """A run of these customers, and its wall seconds."""
    write_hazards(folder / "data", customers, poisoned)
    fields = {"name": "poison", "data": "data/*.csv", "objective": "chaos:hazard", "steps": 2, "trials": 10, "slots": 2}
    fields |= {"scheduler": "fifo", "search_space": SPACE, "metric": "loss", "mode": "min", "seed": 3, "mlflow": False}
    (folder / "definition.yaml").write_text(yaml.safe_dump({**fields, "limits": {**LIMITS, **limits}}))
    start = time.monotonic()
    code = command(folder, "run", "definition.yaml", "--run-dir", "run").wait(1800)
    assert code in (0, 3, 4), (folder / "err").read_text()
    return RunResult(str(folder / "run")), time.monotonic() - start


def _seconds_of_a_restart(folder: Path) -> float:
    """From two runs of one customer that ends its worker: put aside after the first time, and after the seventh."""
    walls = []
    for times in (1, 7):
        (folder / str(times)).mkdir()
        walls.append(_run(folder / str(times), 1, {0: "exit"}, crashes_before_quarantine=times)[1])
    return (walls[1] - walls[0]) / 6


def test_one_per_cent_of_poison_costs_the_others_restarts_only(tmp_path: Path) -> None:
    for name in ("healthy", "poisoned"):
        (tmp_path / name).mkdir()
    healthy, clean = _run(tmp_path / "healthy", CUSTOMERS, {})
    poisoned, wall = _run(tmp_path / "poisoned", CUSTOMERS, POISONED)
    ill = {f"c{number:04d}" for number in POISONED}
    there, here = truth(poisoned), truth(healthy)
    for what in there:
        well = [row for row in there[what] if row["customer"].strip("'") not in ill]
        assert well == [row for row in here[what] if row["customer"].strip("'") not in ill], what
    board = poisoned.leaderboard().set_index("customer")
    assert sorted(board.index) == [f"c{number:04d}" for number in range(CUSTOMERS)]
    for number, kind in POISONED.items():
        wanted = "quarantined" if kind in CRASHING else "no_model" if kind in POISONED_FILES else "ok"
        assert board.loc[f"c{number:04d}", "status"] == wanted, kind
    kinds = Counter(POISONED.values())
    restarts = 2 * sum(kinds[kind] for kind in CRASHING)
    waited = 2 * (kinds["loop"] + kinds["loop_in_c"]) * (LIMITS["trial_seconds"] * 1.25 + 1)
    each = _seconds_of_a_restart(tmp_path)
    restarting = (restarts * each + waited) / 2  # by two workers, of which one is at it at a time
    figure(
        f"{len(POISONED)} of {CUSTOMERS} customers poisoned: {wall:.1f} s instead of {clean:.1f} s, {wall / clean:.2f} "
        f"times as long; {(wall - restarting) / clean:.2f} times without {restarts} restarts of {each:.1f} s and "
        f"{waited:.0f} s of waiting for time limits, shared by two workers"
    )
