"""What a study's last fit is measured by: how long it took, how long a prediction takes, how sure its score is."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_rows import prepare_data

from tuning.evaluation import refit
from tuning.evaluation.conclusion import conclude
from tuning.evaluation.hold_out_error import hold_out_error, scores_without
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import StudyData
from tuning.evaluation.winner import StudyOutcome
from tuning.preprocessing.task import Prediction
from tuning.records.figures import STUDY_SCHEMA
from tuning.records.schema import StudyRecord, TrialRecord


def prepared(rows: int = 50) -> StudyData:
    frame = pd.DataFrame({"x": np.arange(float(rows)), "y": np.arange(float(rows)) % 7})
    return prepare_data(frame, target="y", task="regression", seed=0)


def concluded(score: float) -> StudyOutcome:
    """What comes of a study with one trial, a mean, with that score on the folds."""
    given: dict[str, Any] = dict.fromkeys((each.name for each in fields(TrialRecord)), "")
    given |= {"trial": 0, "config": {"model": "constant", "strategy": "median"}, "family": "constant", "mode": "max"}
    given |= {"state": "finished", "steps": (), "best_step": 3, "score": score, "fold_scores": (score,) * 3, "seed": 1}
    record = TrialRecord(**{**given, "lineage": None, "schedule": None, "reason": None})
    data = prepared()
    return conclude([record], data, Metric("r2", data.task), "acme")


def test_the_times_are_those_of_the_fit_and_of_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([1.0, 4.0, 4.2])
    monkeypatch.setattr(refit.time, "perf_counter", lambda: next(moments))
    found = concluded(1.0)
    assert found.refit_seconds == pytest.approx(3.0)
    assert found.predict_ms_per_row == pytest.approx(20.0)  # 200 ms, 10 rows


def test_a_constant_that_nothing_beats_is_not_measured() -> None:
    found = concluded(-9.0)
    assert found.is_constant
    assert (found.refit_seconds, found.predict_ms_per_row, found.test_error) == (None, None, None)


def test_the_error_of_a_mean_over_rows_is_its_standard_error() -> None:
    data = prepared(4000)
    truth = data.y[data.split.test]
    errors = np.random.default_rng(0).exponential(size=len(truth))
    mae = Metric("mae", data.task)
    found = hold_out_error(scores_without(Prediction(truth + errors), data, mae))
    assert found == pytest.approx(errors.std() / np.sqrt(len(truth)), rel=0.4)  # of 20 groups it is known to a sixth


def test_a_gain_is_surer_than_both_scores_where_both_models_err_on_the_same_rows() -> None:
    data = prepared(4000)
    truth = data.y[data.split.test]
    errors = np.random.default_rng(0).exponential(size=len(truth))
    mae = Metric("mae", data.task)
    one, other = (scores_without(Prediction(truth + errors * by), data, mae) for by in (1.0, 1.1))
    assert one is not None
    assert other is not None
    assert hold_out_error(other - one) == pytest.approx(0.1 * (hold_out_error(one) or 0.0), rel=1e-6)


def test_of_few_rows_and_of_ones_own_metric_no_error_is_known() -> None:
    few, data = prepared(), prepared(400)
    assert scores_without(Prediction(few.y[few.split.test]), few, Metric("r2", few.task)) is None
    own = replace(Metric("mine", data.task), function=lambda y, values: 1 / 0)
    assert scores_without(Prediction(data.y[data.split.test]), data, own) is None


def record(customer: str, milliseconds: float | None) -> StudyRecord:
    types = {"string": "", "double": 0.0, "int64": 0, "int32": 0}
    given: dict[str, Any] = {each.name: types.get(str(each.type), 0.0) for each in STUDY_SCHEMA}
    given |= {"study": customer, "customer": customer, "status": "ok", "config": {}, "family": None, "ensemble": None}
    given |= {"reason": None, "notes": ()}
    return StudyRecord(**{**given, "predict_ms_per_row": milliseconds})
