"""The tests behind a comparison; the task is the unit, never the seed and never the trial.

The procedure is Demšar's (Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7, 2006): Friedman
over all methods, then Wilcoxon's signed-rank test on pairs, corrected after Holm (1979). The distributions are
scipy's, but for that of signed ranks with ties. Values are tasks x methods, less is better, equal is a tie.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

# Up to here the chi-square and F approximations are poor, and permuting is cheap.
PERMUTED_TASKS = 15
# Regrets equal to this many decimals are a tie: an incumbent found twice differs only by rounding.
TIE_DECIMALS = 10
# Beyond, the normal approximation of signed ranks is as good and cheaper.
EXACT_TASKS = 50


@dataclass(frozen=True)
class Friedman:
    """Friedman's test with ties. statistic: chi-square with `freedom` degrees; f: Iman and Davenport's F.

    p: of a permutation test within tasks for up to `PERMUTED_TASKS` tasks, of the F distribution above. None of
    the figures says which methods differ.
    """

    statistic: float
    freedom: int
    f: float
    p: float
    permuted: bool


@dataclass(frozen=True)
class SignedRank:
    """Wilcoxon's signed-rank test of paired differences; two-sided.

    plus, minus: rank sums of the positive and the negative differences, the ranks of zeros shared between both.
    """

    plus: float
    minus: float
    p: float


@dataclass(frozen=True)
class Interval:
    """An estimate with its bootstrap interval; low and high are NaN where one task allows none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Counts:
    """On how many tasks the first was better, equal, worse."""

    wins: int
    ties: int
    losses: int


def friedman(values: np.ndarray) -> Friedman:
    """Test whether methods differ at all; `values` is tasks x methods, at least two tasks and three methods."""
    tasks, methods = values.shape
    ranks = stats.rankdata(values, axis=1)
    if (ranks == ranks[:, :1]).all():
        return Friedman(0.0, methods - 1, 0.0, 1.0, False)
    chi = float(stats.friedmanchisquare(*values.T).statistic)
    room = tasks * (methods - 1) - chi
    f = (tasks - 1) * chi / room if room > 1e-9 else np.inf
    if tasks > PERMUTED_TASKS:
        return Friedman(chi, methods - 1, f, float(stats.f.sf(f, methods - 1, (methods - 1) * (tasks - 1))), False)
    # Ties and the number of ranks stay as they are within a task, so the sum of squares orders as chi-square does.
    test = stats.permutation_test(
        tuple(ranks.T),
        lambda *columns, axis=-1: (np.stack([column.sum(axis=axis) for column in columns]) ** 2).sum(axis=0),
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        batch=1000,
        rng=np.random.default_rng(0),
    )
    return Friedman(chi, methods - 1, f, float(test.pvalue), True)


def wilcoxon(differences: np.ndarray) -> SignedRank:
    """Test paired differences of regret; no difference at all is p = 1.

    Differences are compared to `TIE_DECIMALS` decimals. Zeros are treated after Pratt. The p-value is exact up to
    `EXACT_TASKS` tasks, with ties and zeros too, asymptotic beyond.
    """
    differences = np.round(np.asarray(differences, dtype=float), TIE_DECIMALS)
    ranks = stats.rankdata(np.abs(differences))
    moved = differences != 0
    plus, minus = (float(ranks[side].sum()) for side in (differences > 0, differences < 0))
    if not moved.any():
        p = 1.0
    elif len(differences) <= EXACT_TASKS:
        p = _exact_p(ranks[moved], plus)
    else:
        p = float(stats.wilcoxon(differences, zero_method="pratt", method="asymptotic").pvalue)
    shared = float(ranks[~moved].sum()) / 2
    return SignedRank(plus + shared, minus + shared, min(1.0, p))


def _exact_p(ranks: np.ndarray, plus: float) -> float:
    """Return the share of sign patterns of these ranks as far from the mean as `plus`.

    scipy tries all ways where there are ties, which takes a second with 13 tasks. Here the sum's distribution is built
    rank by rank; ties make halves of ranks, so everything is counted twice.
    """
    chances = np.ones(1)
    for rank in np.rint(2 * ranks).astype(int):
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2
    middle = (len(chances) - 1) / 2
    return float(chances[np.abs(np.arange(len(chances)) - middle) >= abs(2 * plus - middle)].sum())


def smallest_p(tasks: int) -> float:
    """Return the smallest two-sided p that Wilcoxon's test can give with so many tasks."""
    return float(stats.wilcoxon(np.arange(1.0, tasks + 1)).pvalue) if tasks else 1.0


def holm(p: Sequence[float]) -> np.ndarray:
    """Return Holm's step-down adjusted p-values, in the given order."""
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def bootstrap(values: np.ndarray, level: float = 0.95, resamples: int = 2000) -> Interval:
    """Return the mean with its bias-corrected bootstrap interval (BCa); always the same draws."""
    values = np.asarray(values, dtype=float)
    mean = float(values.mean())
    if len(values) < 2:
        return Interval(mean, np.nan, np.nan)
    if np.ptp(values) == 0:
        return Interval(mean, mean, mean)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a degenerate BCa answers NaN, which is handled below
        found = _bootstrap(values, "BCa", level, resamples)
        if not np.isfinite([found.low, found.high]).all():
            found = _bootstrap(values, "percentile", level, resamples)
    return Interval(mean, float(found.low), float(found.high))


def _bootstrap(values: np.ndarray, method: str, level: float, resamples: int) -> Interval:
    answer = stats.bootstrap(
        (values,), np.mean, confidence_level=level, n_resamples=resamples, method=method, rng=np.random.default_rng(0)
    ).confidence_interval
    return Interval(float(values.mean()), answer.low, answer.high)


def counts(differences: np.ndarray) -> Counts:
    """Wins, ties and losses; a negative difference is a win, since less is better."""
    return Counts(int((differences < 0).sum()), int((differences == 0).sum()), int((differences > 0).sum()))


def pairwise(values: np.ndarray) -> dict[tuple[int, int], SignedRank]:
    """Return Wilcoxon's test for every pair of columns (first before second), uncorrected."""
    return {(a, b): wilcoxon(values[:, a] - values[:, b]) for a, b in combinations(range(values.shape[1]), 2)}


def cliques(mean_ranks: np.ndarray, different: np.ndarray) -> list[tuple[int, ...]]:
    """Return maximal runs of methods, neighbours in mean rank, that do not differ: the bars of a diagram.

    different: square, True where a pair differs significantly.
    """
    order = np.argsort(mean_ranks, kind="stable")
    runs: list[tuple[int, ...]] = []
    for start in range(len(order)):
        end = start
        while end + 1 < len(order) and not different[np.ix_(order[start : end + 2], order[start : end + 2])].any():
            end += 1
        run = tuple(int(index) for index in order[start : end + 1])
        if len(run) > 1 and not any(set(run) <= set(other) for other in runs):
            runs.append(run)
    return runs
