"""The gain over the baseline as a figure by which customers can be compared, whatever the size of their targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

Amounts: TypeAlias = np.ndarray | Sequence[float | None]


def is_error(metric: str) -> bool:
    """Whether a metric is an error, as its name tells: 0 is the best, and its size is often that of the target."""
    return metric.startswith("neg_")


def relative_gains(gain: Amounts, baseline_test_score: Amounts) -> np.ndarray:
    """Gains as shares of the baseline's error, which is the skill of forecasts: 1 - error / error of the baseline.

    gain, baseline_test_score: (n,) of an error, as recorded. The answer (n,) is at most 1; NaN where there is no gain.
    Where the baseline makes no error, it is 0 for a model that makes none either, else -inf.
    """
    gained = np.asarray(gain, dtype=float)
    error = np.abs(np.asarray(baseline_test_score, dtype=float))
    perfect = np.where(gained < 0, -np.inf, gained)
    with np.errstate(invalid="ignore"):  # of an infinite error nothing is known
        shares: np.ndarray = np.divide(gained, error, out=perfect, where=error != 0) + 0.0  # never -0.0
    return shares


def relative_gain(gain: float | None, baseline_test_score: float | None, metric: str) -> float | None:
    """The relative gain of one customer; None where there is no gain, or where the metric is no error."""
    if gain is None or not is_error(metric):
        return None
    return float(relative_gains([gain], [baseline_test_score])[0])


def compared_gains(gain: Amounts, baseline_test_score: Amounts, metric: str) -> np.ndarray:
    """The gains to sort by and to take the median of: of an error `relative_gains`, of another score as they are."""
    return relative_gains(gain, baseline_test_score) if is_error(metric) else np.asarray(gain, dtype=float)
