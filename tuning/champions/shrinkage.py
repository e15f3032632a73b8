"""What a measured gain is worth: measured gains differ by luck too, and those of winners more than others'.

Gains are taken for normal around a mean of all customers (normal-normal), with the spread that explains how much more
they differ than their errors say: method of moments, as Paule and Mandel (1982) do it, where no customer counts for
more than three standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# As many rows of a usual customer as stand beside a customer's own where its variance is estimated.
PRIOR_ROWS = 4.0
# A customer counts up to here, in standard deviations; what the mean of squares is then, of normal values.
MOST, MEAN_SQUARE = 3.0, 0.995


@dataclass(frozen=True)
class ShrunkenGains:
    """mean, spread: of the true gains of all customers. gain, deviation: (n,) of each, given what was measured."""

    mean: float
    spread: float
    gain: np.ndarray
    deviation: np.ndarray

    def no_better(self, least_gain: float) -> np.ndarray:
        """(n,) how likely each true gain is `least_gain` at most."""
        from scipy.special import ndtr

        with np.errstate(divide="ignore", invalid="ignore"):
            away = np.where(self.deviation > 0, (least_gain - self.gain) / self.deviation, -np.inf)
        chances: np.ndarray = ndtr(away)
        return chances


def most_no_better(gain: np.ndarray, chosen: np.ndarray, least_gain: float) -> int:
    """About how many of the chosen are no better, if all that are not gain exactly `least_gain`: as many of these are
    measured above it as below.

    gain: (n,) as measured. chosen: (n,) those of the largest expected gains.
    """
    below = gain <= least_gain
    return int(min(chosen.sum(), max(2 * below.sum() - (~chosen & below).sum(), 0)))


def shrunken(gain: np.ndarray, error: np.ndarray, rows: np.ndarray) -> ShrunkenGains:
    """Gains (n,) as shares of the champions' losses, with their standard errors and rows, shrunken towards their mean.

    A gain outside -1 to 1 counts as that. One that is not known (NaN) gets the mean.
    """
    known = np.isfinite(gain)
    if not known.any():
        return ShrunkenGains(0.0, 0.0, np.zeros(len(gain)), np.zeros(len(gain)))
    values = np.clip(gain, -1.0, 1.0)
    squares = _error_squares(error, rows)
    spread_square = _spread_square(values[known], squares[known])
    mean, mean_square = _mean(values[known], squares[known] + spread_square)
    share = np.where(known, spread_square / np.maximum(spread_square + squares, np.finfo(float).tiny), 0.0)
    left = np.where(known, share * squares, spread_square)
    return ShrunkenGains(
        mean=mean,
        spread=float(np.sqrt(spread_square)),
        gain=mean + share * (np.where(known, values, mean) - mean),
        deviation=np.sqrt(left + (1.0 - share) ** 2 * mean_square),
    )


def _error_squares(error: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Squared errors, of a few rows held near to those of others: two alike rows do not make a gain sure."""
    per_row = error**2 * rows
    own = np.where(np.isfinite(per_row), np.maximum(rows - 1.0, 0.0), 0.0)
    usual = float(np.median(per_row[own > 0])) if (own > 0).any() else 1.0
    held = (PRIOR_ROWS * usual + own * np.nan_to_num(per_row)) / (PRIOR_ROWS + own)
    return np.maximum(held, 1e-12) / np.maximum(rows, 1.0)


def _mean(values: np.ndarray, squares: np.ndarray) -> tuple[float, float]:
    """The mean by precision, and its squared error."""
    weights = 1.0 / squares
    return float((weights * values).sum() / weights.sum()), float(1.0 / weights.sum())


def _spread_square(values: np.ndarray, squares: np.ndarray) -> float:
    """The variance with which all differ from their mean as far as they should; 0 where errors alone explain it."""
    low, high = 0.0, 4.0
    for _ in range(40):
        middle = (low + high) / 2
        mean, _ = _mean(values, squares + middle)
        away = np.minimum((values - mean) ** 2 / (squares + middle), MOST**2).sum()
        low, high = (middle, high) if away > MEAN_SQUARE * (len(values) - 1) else (low, middle)
    return high if high > 1e-11 else 0.0
