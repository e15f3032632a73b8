"""Probabilities that the folds find too sure, or not sure enough, are mended where log loss is the metric."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlflow_records import trial
from prepared_rows import prepare_data

from tuning.evaluation.calibration import temperature_of
from tuning.evaluation.conclusion import conclude, fitted_on_all
from tuning.evaluation.fast_scores import LOG_LOSS
from tuning.evaluation.metrics import Metric, mode_of
from tuning.evaluation.out_of_fold import KeptPredictions
from tuning.evaluation.study_data import StudyData, full_steps, train
from tuning.evaluation.winner import StudyOutcome
from tuning.models.customer_model import load_model
from tuning.preprocessing.task import BINARY, Prediction, calibrated
from tuning.records.schema import Config
from tuning.storage.run_directory import RunDirectory

AUC = "roc_auc"
TIMID: Config = {"model": "logistic", "C": 0.02}  # nearly the shares of the classes, though the order is right


def table(rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(rows, 2)), columns=["a", "b"])
    frame["y"] = np.where(frame["a"] + rng.normal(scale=0.3, size=rows) > 0, "yes", "no")
    return frame


def data_of(rows: int = 200) -> StudyData:
    data = prepare_data(table(rows), target="y", task=BINARY, seed=0)
    data.kept = KeptPredictions.of_rows(rows, data.task, mode_of(LOG_LOSS))
    return data


def concluded(data: StudyData, metric: str) -> StudyOutcome:
    scored = Metric(metric, data.task)
    *_, last = train(TIMID, data, scored, 5)
    record = trial(
        config=TIMID, family="logistic", metric=metric, mode=scored.mode, seed=5, score=last.score, trial=0,
        fold_scores=last.fold_scores, best_step=full_steps(TIMID, data), schedule=None, lineage=None,
    )  # fmt: skip
    return conclude([record], data, scored, "acme")


def test_a_temperature_by_hand() -> None:
    said = Prediction(np.array([1]), np.array([[0.2, 0.8]]))
    surer = calibrated(said, 0.5).proba  # squares: 0.04 and 0.64
    assert surer is not None
    np.testing.assert_allclose(surer, [[0.04 / 0.68, 0.64 / 0.68]])
    assert calibrated(said, 1.0) is said


@pytest.mark.parametrize(("sure", "expected"), [(2.0, (1.2, 1.7)), (1.0, (0.9, 1.1)), (0.5, (0.6, 0.8))])
def test_what_is_too_sure_is_cooled_and_what_is_too_timid_is_not(sure: float, expected: tuple[float, float]) -> None:
    data, rng = data_of(2000), np.random.default_rng(0)
    rows = np.concatenate([data.split.search[valid] for _, valid in data.split.folds])
    logit = rng.normal(scale=2, size=len(rows))
    data.y[rows] = rng.uniform(size=len(rows)) < 1 / (1 + np.exp(-logit))
    proba = 1 / (1 + np.exp(-sure * logit))
    left_out = np.column_stack([1 - proba, proba])
    low, high = expected
    assert low <= temperature_of(left_out, data, Metric(LOG_LOSS, data.task)) <= high
    assert temperature_of(left_out, data, Metric(AUC, data.task)) == 1.0
    assert temperature_of(None, data, Metric(LOG_LOSS, data.task)) == 1.0


def test_few_rows_move_a_temperature_little() -> None:
    few, many = (concluded(data_of(rows), LOG_LOSS).model for rows in (16, 400))
    assert few is not None
    assert many is not None
    assert many.temperature < few.temperature <= 1.0
    assert few.temperature > 0.8


def test_a_model_is_scored_and_answers_with_its_temperature(tmp_path: Path) -> None:
    data = data_of()
    outcome = concluded(data, LOG_LOSS)
    model = outcome.model
    assert model is not None
    assert model.temperature < 0.9
    unseen, plain = table().iloc[data.split.test], concluded(data_of(), AUC).model
    assert plain is not None
    assert plain.temperature == 1.0
    metric = Metric(LOG_LOSS, data.task)
    score, without = (metric.score(data.y[data.split.test], each.prediction(unseen)) for each in (model, plain))
    assert score == outcome.test_score < without
    np.testing.assert_array_equal(model.predict(unseen), plain.predict(unseen))
    directory = RunDirectory(str(tmp_path))
    kept = fitted_on_all(outcome, data).model
    assert kept is not None
    assert kept.temperature == model.temperature
    kept.save(directory, "models/acme")
    again = load_model(directory, "models/acme")
    np.testing.assert_array_equal(again.predict_proba(unseen), kept.predict_proba(unseen))
