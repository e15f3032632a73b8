"""Random search computed instead of run: the exact expectation of its best of n.

A single random search is noise (the luckiest of five reaches the mean of a Gaussian process on half of the tasks
of HPO-B). From a complete table the expectation is a sum.
"""

from __future__ import annotations

import numpy as np


def expected_best(losses: np.ndarray, trials: int | np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """E[min of n draws] from a table of losses, for each n of `trials`; NaN counts as a loss as bad as the worst.

    Random search may draw a configuration twice.
    weights: chance of each configuration, summing to 1; default: all equal.

    With the M losses in order: the best of all, plus each step to the next worse one times the chance that the i
    better ones were all missed, ((M-i)/M)^n.
    """
    filled = np.where(np.isnan(losses), np.nanmax(losses), losses)
    order = np.argsort(filled, kind="stable")
    values, count = filled[order], len(filled)
    steps = np.diff(values)
    wanted = np.atleast_1d(np.asarray(trials, dtype=float))
    chances = np.full(count, 1 / count) if weights is None else weights[order]
    missed = np.clip(1 - np.cumsum(chances)[:-1], 0, 1)
    return np.array([values[0] + steps @ missed**n for n in wanted])
