"""How long a plan says that its run will take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_frame, write_customers

from tuning import TuneRunner
from tuning.planning.run_time import RunTime
from tuning.runs.earlier_runs import EarlierRun

WITHOUT = {"mlflow": False, "report": False, "slots": 1, "task": "regression", "target": "y", "algorithm": "random"}
PATIENT = 120.0  # seconds, for machines that do much beside


def runner(folder: Path, **changes: object) -> TuneRunner:
    made = TuneRunner({"name": "shops", "data": str(folder / "*.csv"), "storage": str(folder / "runs"), "trials": 4,
                       "search_space": "ridge", **WITHOUT, **changes})  # fmt: skip
    made.timing = replace(made.timing, trial_s=PATIENT)
    return made


def test_a_run_takes_about_what_its_plan_says_from_timed_trials_and_then_from_the_run(tmp_path: Path) -> None:
    write_customers(tmp_path, 6)
    plan = runner(tmp_path).plan()
    timed = plan.run_time
    assert timed is not None
    assert timed.source.startswith("from 1")
    assert "of 3 customers timed just now" in timed.source
    assert f"duration    about {'' if timed.least is None else round(timed.least)}" in plan.describe()
    assert plan.to_dict()["seconds"] == {"least": timed.least, "most": timed.most, "source": timed.source}

    result = runner(tmp_path).run(progress=False, in_process=True)
    took = result.summary()["wall_seconds"]
    again = runner(tmp_path, trials=8).plan().run_time
    assert again is not None
    assert again.source.startswith(f"from {result.directory.shown}, which took")
    # Another one may use the machine for a while, so these are orders of magnitude.
    for told, seconds in ((timed, took), (again, 2 * took)):
        assert told.least is not None
        assert told.most is not None
        assert told.least / 4 < seconds < told.most * 4
        assert told.most < 100

    other = runner(tmp_path, search_space="elastic_net").plan().run_time
    assert other is not None
    assert "timed just now" in other.source


def test_an_estimate_follows_trials_slots_new_customers_and_the_budget(tmp_path: Path) -> None:
    write_customers(tmp_path, 4)
    names = [f"c{number:04d}" for number in range(4)]
    before = EarlierRun("runs/1", wall=100.0, slots=2, seconds=160.0, per_trial=dict.fromkeys(names, 10.0))
    plan = runner(tmp_path).plan()  # 4 trials of 4 customers are 160 seconds of trials

    def least(earlier: EarlierRun, **changes: object) -> float:
        found = earlier.run_time(runner(tmp_path, **changes).plan()).least
        assert found is not None
        return found

    assert least(before, slots=2) == pytest.approx(60)
    assert least(before, slots=1) == pytest.approx(120)
    assert least(before, slots=2, trials=40) == pytest.approx(600)
    half = replace(before, per_trial=dict.fromkeys(names[:2], 10.0))
    assert least(half, slots=2) < 60
    assert str(half.run_time(plan)).endswith("which took 2 min; 50 % of the customers were not in it")
    budget = before.run_time(runner(tmp_path, time_budget="90s").plan())
    assert (budget.least, budget.most) == (90, 90)
    assert budget.source.endswith("; time_budget ends it")


def test_an_objective_is_not_called_for_an_estimate(tmp_path: Path) -> None:
    def objective(config: dict[str, float]) -> float:
        (tmp_path / "called").touch()
        return config["x"]

    space = {"x": {"type": "float", "low": 0.0, "high": 1.0}}
    plan = TuneRunner(objective=objective, search_space=space, storage=str(tmp_path / "runs"), mlflow=False).plan()
    assert "duration    not known: no earlier run of this definition" in plan.describe()
    assert plan.to_dict()["seconds"] == {"least": None, "most": None, "source": str(plan.run_time).partition(": ")[2]}
    assert not (tmp_path / "called").exists()


def test_trials_that_take_longer_than_a_plan_waits_are_said_to(tmp_path: Path) -> None:
    made = TuneRunner({"data": make_frame(), "storage": str(tmp_path / "runs"), **WITHOUT})
    made.timing = replace(made.timing, trial_s=1e-3)
    assert str(made.plan().run_time).endswith("no trial of a small customer could be timed in a few seconds")


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (RunTime("from a", 240.0, 540.0, 2), "about 4 to 9 min on 2 slots, from a"),
        (RunTime("from a", 40.0, 540.0, 1), "about 40 s to 9 min on 1 slot, from a"),
        (RunTime("from a", 7200.0, None, 2), "more than 2.0 h on 2 slots, from a"),
        (RunTime("nobody knows"), "not known: nobody knows"),
    ],
)
def test_an_estimate_is_a_sentence(told: RunTime, text: str) -> None:
    assert str(told) == text
