"""Intervals: how many new targets lie within, and what a model keeps for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_rows import prepare_data
from trained import trained

from tuning.errors import DefinitionError
from tuning.evaluation.conclusion import conclude, fitted_on_all
from tuning.evaluation.metrics import Metric
from tuning.evaluation.out_of_fold import KeptPredictions
from tuning.evaluation.study_data import StudyData
from tuning.evaluation.winner import StudyOutcome
from tuning.models.bounds import Bounds
from tuning.models.customer_model import load_model
from tuning.models.residuals import Residuals
from tuning.preprocessing.task import BINARY, REGRESSION
from tuning.storage.run_directory import RunDirectory

RMSE = "rmse"


def of(residuals: np.ndarray, answers: np.ndarray | None = None, **fields: Any) -> Residuals:
    answers = np.zeros(len(residuals)) if answers is None else answers
    found = Residuals.of(answers, answers + residuals, fields.get("weight"), fields.get("bounds"))
    assert found is not None
    return found


def covered(found: Residuals, residuals: np.ndarray, answers: np.ndarray, level: float) -> float:
    low, high = found.ends(answers, level)
    return float(((low <= answers + residuals) & (answers + residuals <= high)).mean())


def test_an_interval_by_hand() -> None:
    found = of(np.array([3.0, -4, 1, 0, -1, 2, -2, 4, -3, 5, -6, 7, 8, -9, 10, 11, -12, 13, 14]))
    low, high = found.ends(np.array([10.0, 20.0]), 0.7)  # of 19 distances that of rank (19 + 1) × 0.7
    assert high - 10 == pytest.approx([9, 19], abs=1)
    assert (high + low).tolist() == [20, 40]
    ((high,),) = found.ends(np.zeros(1), 0.95)[1:]  # leaves out one row: 2.776 of their mean, as of Student's t
    assert high == pytest.approx(2.776 * 115 / 19, rel=1e-3)


def test_few_rows_are_drawn_to_the_typical_customer_and_many_are_not() -> None:
    rng = np.random.default_rng(8)
    for rows, drawn in ((10, 3.0), (2000, 1.0)):  # that lie a tenth as far from what was said as typical ones
        distances = rng.uniform(-0.2, 0.2, rows)
        alone, beside = (Residuals.of(distances, np.zeros(rows), None, None, each) for each in (None, 1.0))
        assert alone is not None
        assert beside is not None
        wide, wider = (each.ends(np.zeros(1), 0.9)[1][0] for each in (alone, beside))
        assert wider / wide == pytest.approx(drawn, abs=0.5)
        assert Residuals.from_json(json.loads(json.dumps(beside.to_json(), allow_nan=False))) == beside
    assert wide == wider, "of many rows distances themselves tell it"


def test_a_larger_share_never_has_a_smaller_interval() -> None:
    rng = np.random.default_rng(10)
    for rows in (1, 4, 25, 90, 400):
        residuals = rng.standard_t(2, size=rows)
        for typical in (None, 0.1):
            found = Residuals.of(residuals, np.zeros(rows), None, None, typical)
            assert found is not None
            ends = [found.ends(np.zeros(1), level)[1][0] for level in np.linspace(0.01, 0.9999, 200)]
            assert ends == sorted(ends)


@pytest.mark.parametrize("rows", [1, 3, 8, 19])
def test_few_rows_are_no_reason_for_narrow_intervals(rows: int) -> None:
    """The largest of few distances is not the largest that there are."""
    known = of(np.arange(1.0, rows + 1))
    ends = [known.ends(np.zeros(1), level)[1][0] for level in (0.5, 0.8, 0.9, 0.95, 0.99)]
    assert ends == sorted(set(ends))
    assert ends[-1] > 1.5 * rows


def test_an_interval_lies_within_the_bounds() -> None:
    low, high = of(np.arange(-20.0, 21.0), bounds=Bounds(0.0, 30.0)).ends(np.array([1.0, 25.0, 33.0]), 0.9)
    assert (low >= 0).all()
    assert high.tolist()[1:] == [30, 33], "but holds a prediction that lies beyond them"


@pytest.mark.parametrize("rows", [30, 200, 5000])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_so_many_new_targets_lie_within(rows: int, level: float) -> None:
    rng, shares = np.random.default_rng(rows), []
    for _ in range(20):
        known, new = rng.lognormal(size=rows) - 1, rng.lognormal(size=1000) - 1
        found = of(known)
        shares.append(covered(found, new, np.zeros(1000), level))
    assert -0.02 < np.mean(shares) - level < 0.02 + 1 / rows


def test_intervals_are_wider_where_residuals_are_larger() -> None:
    rng = np.random.default_rng(3)

    def drawn(rows: int) -> tuple[np.ndarray, np.ndarray]:
        answers = rng.uniform(1, 100, rows)
        return answers * rng.normal(scale=0.1, size=rows), answers

    found, (new, answers) = of(*drawn(400)), drawn(4000)
    for part in (answers < 30, answers > 70):
        assert covered(found, new[part], answers[part], 0.8) == pytest.approx(0.8, abs=0.06)
    low, high = found.ends(np.array([10.0, 90.0, 1e9]), 0.8)
    narrow, wide, beyond = high - low
    assert wide > 3 * narrow
    assert beyond < 2 * wide, "where nothing is known it is as at the edge"


def test_a_row_counts_by_its_weight() -> None:
    residuals, weight = np.array([-6.0, 1, 2, 3, 4, 5]), np.array([3.0, 1, 1, 1, 1, 1])
    (heavy,), (equal,) = (of(residuals, weight=each).ends(np.zeros(1), 0.5)[1] for each in (weight, None))
    assert heavy > equal
    assert of(residuals, weight=np.array([0.0, 1, 1, 1, 1, 1])) == of(residuals[1:])
    assert Residuals.of(residuals, residuals, np.zeros(6), None) is None


@pytest.mark.parametrize("rows", [1, 2, 40, 41, 10_000])
def test_what_is_saved_is_read_again(rows: int) -> None:
    rng = np.random.default_rng(rows)
    answers = rng.uniform(1, 9, rows)
    found = of(answers * rng.normal(size=rows), answers, bounds=Bounds(-np.inf, 1e3))
    saved = json.dumps(found.to_json(), allow_nan=False)
    assert len(saved) < 500
    assert Residuals.from_json(json.loads(saved)) == found


# --- of a study -----------------------------------------------------------------------------------


def table(rows: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.uniform(size=(rows, 3)), columns=["a", "b", "c"])
    frame["y"] = 4 * frame["a"] + np.abs(4 * frame["b"] - 2) + rng.normal(scale=0.3, size=rows)
    return frame


def data_of(frame: pd.DataFrame, *, kept: bool = True, **fields: Any) -> StudyData:
    data = prepare_data(frame, target="y", task=REGRESSION, seed=0, **fields)
    if kept:
        data.kept = KeptPredictions.of_rows(len(frame), data.task, "min")
    return data


def concluded(data: StudyData, *families: str) -> StudyOutcome:
    metric = Metric(RMSE, data.task)
    records = [trained({"model": family}, data, metric, number) for number, family in enumerate(families)]
    return conclude(records, data, metric, "acme")


@pytest.mark.parametrize("what", ["a winner", "an ensemble", "a constant"])
def test_residuals_are_of_rows_that_the_model_had_not_seen(what: str) -> None:
    noise = pd.Series(np.random.default_rng(2).normal(size=90))
    data = data_of(table().assign(y=noise) if what == "a constant" else table())
    outcome = concluded(data, *(("ridge", "knn") if what == "an ensemble" else ("ridge",)))
    assert (outcome.ensemble is not None, outcome.is_constant) == (what == "an ensemble", what == "a constant")
    model = outcome.model
    assert model is not None
    assert model.residuals is not None
    assert model.residuals.rows == 90, "those that the folds left out, and the hold-out"
    held_out = model.prediction(table().iloc[data.split.test].drop(columns="y")).values
    assert max(model.residuals.quantiles) >= 0.99 * abs(data.y[data.split.test] - held_out).max()
    again = fitted_on_all(outcome, data).model
    assert again is not None
    assert again.residuals == model.residuals


def test_without_an_ensemble_the_hold_out_alone_is_known() -> None:
    data = data_of(table(), kept=False)
    model = concluded(data, "ridge").model
    assert model is not None
    assert model.residuals is not None
    y = data.y[data.split.test]
    said = model.predict(table().iloc[data.split.test].drop(columns="y"))
    assert model.residuals.rows == len(y)
    assert max(model.residuals.quantiles) == pytest.approx(max(abs(y - said)), rel=1e-4)


def test_a_model_predicts_intervals_also_after_it_was_saved(tmp_path: Path) -> None:
    frame = table()
    model = concluded(data_of(frame, bounds=[0, 3]), "ridge", "knn").model
    assert model is not None
    new = frame[:7].drop(columns="y").set_axis([*"abcdefg"])
    told = model.predict(new, interval=0.8)
    assert told.columns.tolist() == ["prediction", "prediction_low", "prediction_high"]
    assert told.index.tolist() == [*"abcdefg"]
    np.testing.assert_array_equal(told["prediction"], model.predict(new))
    assert (told["prediction_low"] < told["prediction"]).all()
    assert (told["prediction_high"] <= 3).all()
    wider = model.predict(new, 0.95)
    assert (wider["prediction_low"] <= told["prediction_low"]).all()
    directory = RunDirectory(str(tmp_path))
    model.save(directory, "models/acme")
    pd.testing.assert_frame_equal(load_model(directory, "models/acme").predict(new, interval=0.8), told)


def test_classes_have_probabilities_in_place_of_intervals() -> None:
    frame = table(60).assign(y=lambda rows: np.where(rows["y"] > 2, "large", "small"))
    data = prepare_data(frame, target="y", task=BINARY, seed=0)
    metric = Metric("log_loss", data.task)
    model = conclude([trained({"model": "logistic"}, data, metric)], data, metric, "acme").model
    assert model is not None
    assert model.residuals is None
    with pytest.raises(DefinitionError, match="predict_proba"):
        model.predict(frame.drop(columns="y"), interval=0.8)
