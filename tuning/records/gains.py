"""The gain over the baseline as a figure by which customers can be compared, whatever the size of their targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

Amounts: TypeAlias = np.ndarray | Sequence[float | None]


LEAST_OF_CLASS = 5  # hold-out rows; of fewer no score says much
ROW_GROUPS = 20  # of hold-out rows, each left out once for a standard error: so many scores cost less than one fit
#: The errors among scikit-learn's scorers, which are negative there, by the names that people write.
ERRORS = {
    "brier_score": "neg_brier_score",
    "log_loss": "neg_log_loss",
    "max_error": "neg_max_error",
    "mae": "neg_mean_absolute_error",
    "mape": "neg_mean_absolute_percentage_error",
    "mean_gamma_deviance": "neg_mean_gamma_deviance",
    "mean_poisson_deviance": "neg_mean_poisson_deviance",
    "mse": "neg_mean_squared_error",
    "msle": "neg_mean_squared_log_error",
    "median_absolute_error": "neg_median_absolute_error",
    "negative_likelihood_ratio": "neg_negative_likelihood_ratio",
    "rmse": "neg_root_mean_squared_error",
    "rmsle": "neg_root_mean_squared_log_error",
}
_USER = {name: short for short, name in ERRORS.items()}


def is_error(metric: str) -> bool:
    """Whether a recorded metric is an error, as its name tells: 0 is the best, and its size is often the target's."""
    return metric.startswith("neg_") and ":" not in metric


def user_metric(metric: str) -> str:
    """The name that users read."""
    return _USER.get(metric, metric.removeprefix("neg_") if is_error(metric) else metric)


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


def compared_gains(gain: Amounts, baseline_test_score: Amounts, metric: str) -> np.ndarray:
    """The gains to sort by and to take the median of: of an error `relative_gains`, of another score as they are."""
    return relative_gains(gain, baseline_test_score) if is_error(metric) else np.asarray(gain, dtype=float)
