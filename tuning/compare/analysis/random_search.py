"""Random search computed instead of run: the exact expectation of its best of n.

A single random search is noise (the luckiest of five reaches the mean of a Gaussian process on half of the tasks
of HPO-B). From a complete table the expectation is a sum; from recorded random trials it is estimated by pooling
them all, without bias (Tang et al., Showing Your Work Doesn't Always Work, ACL 2020).
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln


def expected_best(
    losses: np.ndarray, trials: int | np.ndarray, replacement: bool = True, weights: np.ndarray | None = None
) -> np.ndarray:
    """E[min of n draws] from a table of losses, for each n of `trials`; NaN counts as a loss as bad as the worst.

    replacement: True is random search, which may draw a configuration twice; False is a shuffled grid, and the
    unbiased estimate from a sample of random trials. n beyond the table is then the best of all.
    weights: chance of each configuration, summing to 1 (only with replacement); default: all equal.

    With the M losses in order: the best of all, plus each step to the next worse one times the chance that the i
    better ones were all missed, ((M-i)/M)^n, or without replacement C(M-i, n) / C(M, n).
    """
    filled = np.where(np.isnan(losses), np.nanmax(losses), losses)
    order = np.argsort(filled, kind="stable")
    values, count = filled[order], len(filled)
    steps = np.diff(values)
    wanted = np.atleast_1d(np.asarray(trials, dtype=float))
    if replacement:
        chances = np.full(count, 1 / count) if weights is None else weights[order]
        missed = np.clip(1 - np.cumsum(chances)[:-1], 0, 1)
        return np.array([values[0] + steps @ missed**n for n in wanted])
    left = np.arange(count - 1.0, 0, -1)
    return np.array([values[0] + steps @ _none_drawn(left, count, min(n, count)) for n in wanted])


def _none_drawn(left: np.ndarray, count: int, n: float) -> np.ndarray:
    """C(left, n) / C(count, n): the chance that n draws without replacement all come from the `left` others."""
    possible = left >= n
    kept = np.where(possible, left - n, 0)
    log = gammaln(left + 1) - gammaln(kept + 1) - gammaln(count + 1) + gammaln(count - n + 1)
    return np.where(possible, np.exp(log), 0.0)


def quantile_of_best(losses: np.ndarray, trials: int | np.ndarray, q: float) -> np.ndarray:
    """The q-quantile of the best of n draws with replacement: a band around `expected_best` without simulation."""
    values = np.sort(np.where(np.isnan(losses), np.nanmax(losses), losses))
    share = 1 - (1 - q) ** (1 / np.atleast_1d(np.asarray(trials, dtype=float)))
    index = np.ceil(share * len(values) - 1e-9).astype(int) - 1
    return np.asarray(values[np.clip(index, 0, len(values) - 1)])
