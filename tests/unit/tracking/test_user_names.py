"""A user's figures and parameters that have names of ours: in MLflow each is there, none mixed with another."""

from __future__ import annotations

import pytest
from mlflow_records import study, trial

from tuning.records.schema import StepRecord, TrialRecord
from tuning.tracking.mlflow_names import TrackedSearch
from tuning.tracking.tracked_runs import RecordRuns

RUNS = RecordRuns(TrackedSearch("churn", "weekly"))
NAMES = ["score", "fit_seconds", "trials", "hp.eta", "user.score", "fit?seconds", "hp?eta", "loss", "Größe"]
SCHEDULE = '[[0, {"eta": 0.1}], [2, {"eta": 0.2}]]'


def points(record: TrialRecord) -> dict[str, list[tuple[int, float]]]:
    """Metric -> (step, value), as MLflow gets them."""
    found: dict[str, list[tuple[int, float]]] = {}
    for name, value, step, _ in RUNS.of_trial(record).metrics:
        found.setdefault(name, []).append((step, value))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_of_any_name_is_there_and_ours_are_what_they_are(name: str) -> None:
    steps = [StepRecord(n, n / 10, n / 10, {name: 100.0 + n, "other": 7.0}) for n in (1, 2, 3)]
    first = points(trial(metric="loss", steps=steps, score=0.3, metrics={name: 103.0}, schedule=SCHEDULE))
    without = points(trial(metric="loss", steps=[StepRecord(1, 0.1)], best_step=1, score=0.1, metrics={}))
    for found, score in ((first, (3, 0.3)), (without, (1, 0.1))):
        assert found["score"] == [score]
        assert found["fit_seconds"] == [(0, 0.25)]
        assert "trials" not in found  # the metric of a study's run by which it is found whole
    assert first["loss"] == [(1, 0.1), (2, 0.2), (3, 0.3)]
    assert first["hp.eta"] == [(0, 0.1), (2, 0.2)]
    (own,) = (key for key, values in first.items() if values == [(1, 101.0), (2, 102.0), (3, 103.0)])
    assert own not in without


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_of_any_name_has_its_steps(name: str) -> None:
    steps = [StepRecord(n, n / 10, n / 10) for n in (1, 2, 3)]
    found = points(trial(metric=name, steps=steps, score=0.3, metrics={}, schedule=SCHEDULE))
    whole = [(1, 0.1), (2, 0.2), (3, 0.3)]
    (own,) = (key for key, values in found.items() if values[:3] == whole)
    assert found["score"] == ([*whole, (3, 0.3)] if own == "score" else [(3, 0.3)])
    assert found["fit_seconds"] == [(0, 0.25)]


def test_a_parameter_named_like_the_model_family_is_there_beside_it() -> None:
    config = {"family": "poisson", "user.family": 1, "eta": 0.1}
    expected = {"family": "objective", "user.family": "poisson", "user.user.family": "1", "eta": "0.1"}
    assert RUNS.of_trial(trial(config=config, family="objective")).params == expected
    assert RUNS.of_study(study(config=config, family="objective")).params == expected
