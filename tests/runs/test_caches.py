"""What saves time changes nothing: the same trials, scores and winner with every cache and shortcut off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import make_customer

from tuning import TuneRunner
from tuning.evaluation.study_data import StudyData


@pytest.fixture(scope="module")
def customers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with gaps and text, one of complete numbers only."""
    folder = tmp_path_factory.mktemp("customers")
    frame = make_customer(np.random.default_rng(3), 90)
    frame.to_csv(folder / "mixed.csv", index=False)
    frame[["monthly_price", "tickets", "churned"]].to_csv(folder / "numbers.csv", index=False)
    return folder


def outcome(customers: Path, run: Path, target: str, models: list[str]) -> tuple[list[Any], list[float], list[float]]:
    """(configurations and states, scores of trials, scores of winners) of a search."""
    runner = TuneRunner(
        data=str(customers / "*.csv"),
        target=target,
        models=models,
        trials=4,
        algorithm={"name": "optuna", "n_startup_trials": 3},
        mlflow=False,
    )
    result = runner.run(str(run), progress=False, in_process=True)
    trials = [(t.study, t.trial, t.config, t.state, t.best_step) for t in result.trial_records]
    winners = [(s.study, s.status, s.trial) for s in result.study_records]
    scores = [score for record in result.trial_records for score in (record.score, *record.fold_scores)]
    tests = [score for s in result.study_records for score in (s.cv_score, s.test_score, s.baseline_test_score)]
    return [trials, winners], scores, tests


def forgetful(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of `StudyData` that never finds anything prepared."""

    def anew(data: StudyData, *args: Any) -> Any:
        data._folds.clear()
        data._whole.clear()
        return method(data, *args)

    return anew


@pytest.mark.parametrize(
    ("target", "models"),
    [
        ("churned", ["logistic", "xgboost", "hist_gradient_boosting"]),
        pytest.param("tickets", ["ridge", "random_forest", "knn"], marks=pytest.mark.slow),
    ],
)
def test_the_search_is_the_same_without_caches_and_shortcuts(
    customers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, models: list[str]
) -> None:
    fast = outcome(customers, tmp_path / "fast", target, models)
    monkeypatch.setattr(StudyData, "folds", forgetful(StudyData.folds))
    monkeypatch.setattr(StudyData, "whole", forgetful(StudyData.whole))
    monkeypatch.setattr("tuning.evaluation.metrics.quick_score", lambda *_: None)
    slow = outcome(customers, tmp_path / "slow", target, models)
    assert slow[0] == fast[0]
    assert slow[1] == pytest.approx(fast[1], rel=1e-12)
    assert slow[2] == pytest.approx(fast[2], rel=1e-12)
