"""Why a study ended is in its records and in MLflow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from search_spaces import Float, SearchSpace
from tuning import TuneRunner
from tuning.notes import texts

FIELDS = {
    "objective": lambda config: (config["x"] - 1) ** 2,
    "search_space": SearchSpace([Float("x", -5, 5, default=1.0)]),
    "metric": "loss",
    "mode": "min",
    "trials": 30,
    "algorithm": "random",
    "mlflow": False,
}


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
    assert texts(record.notes).startswith(f"{rule}: ")
    ended = [str(trial.reason) for trial in result.trial_records if trial.reason]
    assert bool(ended) == (rule == "study_plateau")  # the others are over with the default, which has no reason
    assert {reason.partition(":")[0] for reason in ended} <= {"trial_plateau", "asha"}
    if copied:
        client = mlflow.MlflowClient(mlflow_database)
        experiment = client.get_experiment_by_name("reasons")
        tags = [run.data.tags for run in client.search_runs([experiment.experiment_id])]
        assert sorted(each["tuning.reason"] for each in tags if each.get("tuning.reason")) == sorted(ended)
        assert any(each.get("tuning.notes") == texts(record.notes) for each in tags)
