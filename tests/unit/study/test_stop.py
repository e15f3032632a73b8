"""Stopping rules of a definition: what ends a study early, and that the record says why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from search_spaces import Float, SearchSpace
from tuning import TuneRunner
from tuning.definition.definition import define
from tuning.errors import DefinitionError
from tuning.planning.plan import make_plan
from tuning.tracking.tracked_runs import Search, of_study, of_trial

FIELDS = {
    "objective": lambda config: (config["x"] - 1) ** 2,
    "search_space": SearchSpace([Float("x", -5, 5, default=1.0)]),
    "metric": "loss",
    "mode": "min",
    "trials": 30,
    "algorithm": "random",
    "mlflow": False,
}


def test_a_study_ends_when_its_target_is_reached(tmp_path: Path) -> None:
    result = TuneRunner(**FIELDS, stop={"target": 0.5}).run(str(tmp_path / "run"), progress=False, in_process=True)
    assert len(result.trial_records) == 1  # the default is the optimum
    assert result.study_records[0].notes == "target: trial 00000 reached 0 (target 0.5); 1 of 30 trials were run"


def test_a_study_ends_when_nothing_gets_better(tmp_path: Path) -> None:
    stop = {"study_plateau": {"trials": 5}}
    result = TuneRunner(**FIELDS, stop=stop).run(str(tmp_path / "run"), progress=False, in_process=True)
    assert 5 <= len(result.trial_records) < 12
    assert result.leaderboard()["status"][0] == "ok"
    assert "study_plateau: nothing better than 0 in the last 5 trials" in (result.study_records[0].notes or "")


def test_an_unknown_rule_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(DefinitionError, match="target"):
        define({**FIELDS, "stop": {"targt": 0.5}})


def test_rules_work_in_both_placements() -> None:
    assert make_plan(define({**FIELDS, "stop": {"target": 0.5}, "placement": "spread"})).placement == "spread"


def test_the_reasons_are_tags_in_mlflow(tmp_path: Path) -> None:
    def objective(config: dict[str, float]) -> Iterator[float]:
        for step in range(1, 5):
            yield (config["x"] - 1) ** 2 + 1 / step

    fields = {**FIELDS, "objective": objective, "steps": 4, "scheduler": "asha", "stop": {"study_plateau": 6}}
    result = TuneRunner(**fields).run(str(tmp_path / "run"), progress=False, in_process=True)
    search = Search("search", "run")
    study = of_study(result.study_records[0], search)
    assert study.tags["tuning.notes"].startswith("study_plateau: nothing better than 0.25 in the last 6 trials")
    stopped = [record for record in result.trial_records if record.state == "stopped"]
    assert stopped
    for record in stopped:
        assert of_trial(record, search).tags["tuning.reason"] == record.reason
        assert record.reason.startswith("asha: rung ")


def test_a_trial_of_an_objective_ends_on_its_plateau_with_its_last_step(tmp_path: Path) -> None:
    """Packed here; spread, the same step and reason come from `tuning.execution.spread.spread_study`."""

    def objective(config: dict[str, Any]) -> Iterator[float]:
        yield from (config["x"] + loss for loss in (3.0, 2.0, 1.0, 1.0, 1.5, 1.5, 0.0))

    fields = {**FIELDS, "objective": objective, "steps": 7, "scheduler": "fifo", "stop": {"trial_plateau": 2}}
    default, *others = TuneRunner(**fields).run(str(tmp_path / "run"), progress=False, in_process=True).trial_records
    assert len(default.steps) == 7
    assert others
    for record in others:
        assert (record.state, record.best_step) == ("finished", 5)
        assert record.reason == f"trial_plateau: nothing better than {record.config['x'] + 1.0:.6g} since step 3"


@pytest.mark.parametrize(("rule", "value"), [("target", 1e3), ("study_plateau", 4), ("study_time", 1e-9)])
def test_of_several_rules_each_leaves_its_own_reason(
    tmp_path: Path, mlflow_database: str, rule: str, value: float
) -> None:
    """In the records, and for one of them in MLflow; that of the run's budget: tests/chaos/test_stopping.py."""
    import mlflow

    def objective(config: dict[str, Any]) -> Iterator[float]:
        yield from (abs(config["x"]) + loss for loss in (3.0, 2.0, 2.0, 2.0, 1.0))

    stop = {"trial_plateau": 2, "study_time": 600, "study_plateau": 100, "target": -1.0, rule: value}
    copied = {"tracking_uri": mlflow_database, "experiment": "reasons"} if rule == "study_plateau" else False
    fields = {**FIELDS, "objective": objective, "steps": 5, "trials": 12, "mlflow": copied, "stop": stop}
    result = TuneRunner(**fields).run(str(tmp_path / "run"), progress=False, in_process=True)
    (record,) = result.study_records
    assert record.notes.startswith(f"{rule}: ")
    ended = [trial.reason for trial in result.trial_records if trial.reason]
    assert bool(ended) == (rule == "study_plateau")  # the others are over with the default, which has no reason
    assert {reason.partition(":")[0] for reason in ended} <= {"trial_plateau", "asha"}
    if copied:
        client = mlflow.MlflowClient(mlflow_database)
        experiment = client.get_experiment_by_name("reasons")
        tags = [run.data.tags for run in client.search_runs([experiment.experiment_id])]
        assert sorted(each["tuning.reason"] for each in tags if each.get("tuning.reason")) == sorted(ended)
        assert any(each.get("tuning.notes") == record.notes for each in tags)
