"""Poison of every kind at one per cent of 2,000 customers on real Ray workers: the others notice nothing of it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import yaml
from builders import SPACE
from chaos import POISON, POISONED_FILES, command, promised, truth, write_hazards

from tuning import RunResult
from tuning.execution.crash_log import Crash, crashes
from tuning.execution.packed import WORK
from tuning.runs.plan_file import read_plan

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.timeout(3600)]
KINDS = (*POISON, *POISONED_FILES)
CUSTOMERS = 2000
POISONED = {100 * position + 50: KINDS[position % len(KINDS)] for position in range(CUSTOMERS // 100)}
LIMITS = {"trial_seconds": 2.0, "memory_gb": 1.0, "max_rows": 50}
SLOWER = 1.1  # times as long at most, without the restarts
CRASHING = ("segfault", "exit", "loop", "loop_in_c", "abort")


def _run(folder: Path, customers: int, poisoned: dict[int, str], slots: int = 2) -> tuple[RunResult, float]:
    """A run of these customers, and its wall seconds."""
    write_hazards(folder / "data", customers, poisoned)
    fields = {"name": "poison", "data": "data/*.csv", "objective": "chaos:hazard", "steps": 2, "trials": 10}
    fields |= {"scheduler": "fifo", "search_space": SPACE, "metric": "loss", "mode": "min", "seed": 3, "mlflow": False}
    (folder / "definition.yaml").write_text(
        yaml.safe_dump({**fields, "placement": "packed", "slots": slots, "limits": LIMITS})
    )
    start = time.monotonic()
    code = command(folder, "run", "definition.yaml", "--run-dir", "run").wait(1800)
    assert code in (0, 3, 4), (folder / "err").read_text()
    return RunResult(str(folder / "run")), time.monotonic() - start


def _crashes(result: RunResult) -> list[Crash]:
    """What the workers of a run that ended in the middle left behind."""
    shards = read_plan(result.directory, result.term).shards
    return [crash for shard in range(shards) for crash in crashes(result.directory, result.term, shard, WORK)]


def _waited(found: list[Crash]) -> float:
    """Seconds for which trials hung until the watchdog ended them, as it says itself."""
    ends = [re.match(r"Timeout \((\d+):(\d+):([\d.]+)\)", crash.stack) for crash in found]
    return sum(3600 * int(end[1]) + 60 * int(end[2]) + float(end[3]) for end in ends if end)


def _seconds_of_a_restart(folder: Path) -> float:
    """What one worker loses each time, from two runs on one slot: with and without customers that end their worker."""
    walls, restarts = [], 0
    for name, poisoned in (("none", {}), ("exits", dict.fromkeys(range(5, 64, 10), "exit"))):
        (folder / name).mkdir()
        result, wall = _run(folder / name, 64, poisoned, slots=1)
        walls.append(wall)
        restarts = len(_crashes(result))
        assert restarts == 2 * len(poisoned)
    return (walls[1] - walls[0]) / restarts


def test_one_per_cent_of_poison_costs_the_others_restarts_only(tmp_path: Path) -> None:
    for name in ("healthy", "poisoned", "healthy again"):
        (tmp_path / name).mkdir()
    healthy, before = _run(tmp_path / "healthy", CUSTOMERS, {})
    poisoned, wall = _run(tmp_path / "poisoned", CUSTOMERS, POISONED)
    clean = (before + _run(tmp_path / "healthy again", CUSTOMERS, {})[1]) / 2
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
    found = _crashes(poisoned)
    assert len(found) >= 2 * sum(kind in CRASHING for kind in POISONED.values())
    each, waited = _seconds_of_a_restart(tmp_path), _waited(found)
    restarting = (len(found) * each + waited) / 2  # shared by two workers
    times = (wall - restarting) / clean
    promised(
        f"{len(POISONED)} of {CUSTOMERS} customers poisoned: {wall:.1f} s instead of {clean:.1f} s, {wall / clean:.2f} "
        f"times as long; {times:.2f} times without {len(found)} restarts of {each:.1f} s and "
        f"{waited:.0f} s of hanging until a time limit, both shared by two workers",
        times,
        SLOWER,
    )
