"""How long a plan says that its run will take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import write_customers

from tuning import TuneRunner
from tuning.planning.run_time import RunTime
from tuning.runs.earlier_runs import EarlierRun

WITHOUT = {"mlflow": False, "report": False, "slots": 1, "task": "regression", "target": "y", "algorithm": "random"}


def runner(folder: Path, **changes: object) -> TuneRunner:
    return TuneRunner({"name": "shops", "data": str(folder / "*.csv"), "storage": str(folder / "runs"), "trials": 4,
                       "search_space": "ridge", **WITHOUT, **changes})  # fmt: skip


def test_a_run_takes_about_what_its_plan_says_from_an_earlier_run(tmp_path: Path) -> None:
    write_customers(tmp_path, 6)
    plan = runner(tmp_path).plan()
    assert (plan.run_time, plan.to_dict()["seconds"]) == (None, None)
    assert "duration" not in plan.describe()

    result = runner(tmp_path).run(progress=False, in_process=True)
    took = result.summary()["wall_seconds"]
    again = runner(tmp_path, trials=8).plan()
    told = again.run_time
    assert told is not None
    assert told.source.startswith(f"from {result.directory.shown}, which took")
    # Another one may use the machine for a while, so these are orders of magnitude.
    assert told.least / 4 < 2 * took < told.most * 4
    assert told.most < 100
    assert f"duration    {told}" in again.describe()
    assert again.to_dict()["seconds"] == {"least": told.least, "most": told.most, "source": told.source}
    assert runner(tmp_path, search_space="elastic_net").plan().run_time is None


def test_an_estimate_follows_trials_slots_new_customers_and_the_budget(tmp_path: Path) -> None:
    write_customers(tmp_path, 4)
    names = [f"c{number:04d}" for number in range(4)]
    before = EarlierRun("runs/1", wall=100.0, slots=2, seconds=160.0, per_trial=dict.fromkeys(names, 10.0))
    plan = runner(tmp_path).plan()  # 4 trials of 4 customers are 160 seconds of trials

    def least(earlier: EarlierRun, **changes: object) -> float:
        return earlier.run_time(runner(tmp_path, **changes).plan()).least

    assert least(before, slots=2) == pytest.approx(60)
    assert least(before, slots=1) == pytest.approx(120)
    assert least(before, slots=2, trials=40) == pytest.approx(600)
    half = replace(before, per_trial=dict.fromkeys(names[:2], 10.0))
    assert least(half, slots=2) < 60
    assert str(half.run_time(plan)).endswith("which took 2 min; 50 % of the customers were not in it")
    budget = before.run_time(runner(tmp_path, time_budget="90s").plan())
    assert (budget.least, budget.most) == (90, 90)
    assert budget.source.endswith("; time_budget ends it")


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (RunTime("from a", 240.0, 540.0, 2), "about 4 to 9 min on 2 slots, from a"),
        (RunTime("from a", 40.0, 540.0, 1), "about 40 s to 9 min on 1 slot, from a"),
    ],
)
def test_an_estimate_is_a_sentence(told: RunTime, text: str) -> None:
    assert str(told) == text
