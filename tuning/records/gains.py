"""Errors among metrics, and gains over the baseline."""

from __future__ import annotations

import math

from schedulers.direction import worth_of

LEAST_OF_CLASS = 5  # hold-out rows; of fewer no score says much
ROW_GROUPS = 20  # of hold-out rows, each left out once for a standard error: so many scores cost less than one fit
#: The errors among metrics, of which smaller ones are better, each with the name of scikit-learn's scorer, which turns
#: its sign.
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


def is_error(metric: str) -> bool:
    """Whether a metric is an error, as its name tells: 0 is the best, and its size is often the target's."""
    return metric in ERRORS


def gain_over(other: float, score: float, metric: str, mode: str) -> float | None:
    """Return how much better a score is than another one, of an error in % of that; None where that is not known."""
    return in_unit(worth_of(score, mode) - worth_of(other, mode), other, metric)


def in_unit(difference: float, other: float, metric: str) -> float | None:
    """Return a difference of scores in the unit of gains: of an error in % of the other one, which makes customers
    comparable whatever the size of their targets.

    Where the other one makes no error, it is 0 for a model that makes none either, else -inf. None where nothing is
    known: of an infinite error.
    """
    if not is_error(metric):
        return difference + 0.0  # never -0.0
    if other == 0:
        return -math.inf if difference < 0 else 100 * difference
    share = difference / abs(other)
    return None if math.isnan(share) else 100 * (share + 0.0)
