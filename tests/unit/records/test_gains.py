"""Gains are figures by which customers can be compared, whatever the size of their targets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tuning.basics.wording import gain_text
from tuning.records.gains import compared_gains, is_error, relative_gains


def test_of_an_error_a_gain_is_a_share_of_the_baselines() -> None:
    gain, baseline = np.array([1.0, 1000.0, -1.0]), np.array([-4.0, -4000.0, -2.0])
    error = -baseline - gain
    assert relative_gains(gain, baseline) == pytest.approx(1 - error / -baseline)
    assert compared_gains(gain, baseline, "neg_root_mean_squared_error").tolist() == [0.25, 0.25, -0.5]
    assert compared_gains(gain, baseline, "r2").tolist() == gain.tolist()


def test_a_share_is_defined_whatever_the_baseline_scores() -> None:
    found = relative_gains([0.0, -3.0, None, 1.0, math.inf], [-0.0, 0.0, -1.0, None, -math.inf])
    assert found[:2].tolist() == [0.0, -math.inf]
    assert np.isnan(found[2:]).all()
    assert math.copysign(1, relative_gains([-0.0], [-1.0])[0]) == 1


@pytest.mark.parametrize("metric", ["costs.py:cost", "loss", "roc_auc", "r2", "accuracy"])
def test_what_is_no_error_by_its_name_keeps_its_gain(metric: str) -> None:
    assert not is_error(metric)


@pytest.mark.parametrize(
    ("gain", "share", "shown"),
    [
        (120.0, 0.1234, "12.3 %"),
        (-0.0, -0.0, "0 %"),
        (-9.0, -12.3456, "-1235 %"),
        (0.02, None, "0.02"),  # of a score
        (-3.0, -math.inf, "-3"),  # of a baseline without an error
        (-0.0, None, "0"),
        (None, None, ""),
    ],
)
def test_a_gain_is_shown_in_percent_where_that_says_something(
    gain: float | None, share: float | None, shown: str
) -> None:
    assert gain_text(gain, share) == shown
