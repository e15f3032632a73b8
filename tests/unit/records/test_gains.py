"""Gains are figures by which customers can be compared, whatever the size of their targets."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import get_scorer_names

from tuning.basics.wording import gain_text
from tuning.evaluation.metrics import resolve_metric
from tuning.records.gains import ERRORS, compared_gains, is_error, relative_gains, user_metric
from tuning.records.user_scores import user_row, user_table


def test_of_an_error_a_gain_is_a_share_of_the_baselines() -> None:
    gain, baseline = np.array([1.0, 1000.0, -1.0]), np.array([-4.0, -4000.0, -2.0])
    error = -baseline - gain
    assert relative_gains(gain, baseline) == pytest.approx(1 - error / -baseline)
    assert compared_gains(gain, baseline, "neg_root_mean_squared_error").tolist() == [0.25, 0.25, -0.5]
    assert compared_gains(gain, baseline, "r2").tolist() == gain.tolist()


def test_a_gain_and_its_error_are_shown_in_one_unit() -> None:
    row = {
        "metric": "neg_mean_absolute_error",
        "mode": "max",
        "baseline_test_score": -4.0,
        "gain": 1.0,
        "gain_error": 0.5,
    }
    assert (user_row(row)["gain"], user_row(row)["gain_error"]) == (25.0, 12.5)
    shown = user_table(pa.table({name: [value] for name, value in row.items()}), row["metric"]).to_pylist()[0]
    assert (shown["gain"], shown["gain_error"]) == (25.0, 12.5)
    assert user_row({**row, "metric": "r2"})["gain_error"] == 0.5


def test_a_share_is_defined_whatever_the_baseline_scores() -> None:
    found = relative_gains([0.0, -3.0, None, 1.0, math.inf], [-0.0, 0.0, -1.0, None, -math.inf])
    assert found[:2].tolist() == [0.0, -math.inf]
    assert np.isnan(found[2:]).all()
    assert math.copysign(1, relative_gains([-0.0], [-1.0])[0]) == 1


@pytest.mark.parametrize("metric", ["costs.py:cost", "loss", "roc_auc", "r2", "accuracy"])
def test_what_is_no_error_by_its_name_keeps_its_gain(metric: str) -> None:
    assert not is_error(metric)


@pytest.mark.parametrize(
    ("gain", "in_percent", "shown"),
    [
        (12.34, True, "12.3 %"),
        (-0.0, True, "0 %"),
        (-1234.56, True, "-1235 %"),
        (0.02, False, "0.02"),  # of a score
        (-math.inf, True, "-inf %"),  # of a baseline without an error
        (-0.0, False, "0"),
        (None, True, ""),
    ],
)
def test_a_gain_over_an_error_is_shown_in_percent(gain: float | None, in_percent: bool, shown: str) -> None:
    assert gain_text(gain, in_percent) == shown


def test_every_error_of_scikit_learn_has_a_name_that_a_definition_takes() -> None:
    errors = [name for name in get_scorer_names() if is_error(name)]
    assert [name for name in errors if name not in ERRORS.values()] == []
    assert [resolve_metric(user_metric(name), "regression") for name in ("neg_root_mean_squared_error", "r2")] == [
        "neg_root_mean_squared_error",
        "r2",
    ]
    assert not is_error("neg_costs.py:cost"), "a function of one's own"
