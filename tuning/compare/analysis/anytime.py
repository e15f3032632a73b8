"""Any-time performance: how good the best trial so far is, over a budget of trials, steps or seconds.

Scores of different tasks are made comparable as *normalised regret* (Bayesmark's scale, docs/scoring.rst of
uber/bayesmark): 0 is the best score known for the task, 1 the median of single random configurations.
Incumbents of a task are compared up to the budget that every method spent there; a search that ended earlier
keeps its incumbent. Where a method has no finished trial yet, or none at all, it counts as worst.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pandas as pd
from scipy import stats

from tuning.compare.analysis.curves import AXES, CURVE, Curves, losses
from tuning.compare.analysis.statistics import TIE_DECIMALS
from tuning.errors import DataError
from tuning.notes import ComparisonCode, Note

POINTS = 100
MATCH, REFUSE = "match", "refuse"


@dataclass(frozen=True)
class Anytime:
    """Normalised regret over the budget of one axis; arrays are method x task x point of the budget.

    Attributes:
        axis: "trials", "steps" or "seconds".
        budget: per task, in units of the axis.
        share: the points, as shares of the budget, ending with 1.
        seeds: per method and task, the regret of each seed (seed x point).
        regret: their mean; it is ranked and tested.
        clipped: the same with every seed clipped to [0, 1]; it is averaged over tasks, so that one diverged score
            cannot decide.
        scale: per task, the loss that is one unit of regret.
        notes: what was matched.
    """

    axis: str
    methods: tuple[str, ...]
    tasks: tuple[str, ...]
    budget: np.ndarray
    share: np.ndarray
    seeds: tuple[tuple[np.ndarray, ...], ...]
    scale: np.ndarray
    notes: tuple[Note, ...] = ()

    @cached_property
    def regret(self) -> np.ndarray:
        return np.round(self._seed_mean(clip=False), TIE_DECIMALS)

    @cached_property
    def clipped(self) -> np.ndarray:
        return self._seed_mean(clip=True)

    @cached_property
    def ranks(self) -> np.ndarray:
        """Rank of each method on each task, 1 is best, ties share their mean."""
        return np.asarray(stats.rankdata(self.regret, axis=0))

    @cached_property
    def mean_regret(self) -> np.ndarray:
        """Method x point: clipped regret, averaged over tasks."""
        return np.asarray(self.clipped.mean(axis=1))

    @cached_property
    def mean_rank(self) -> np.ndarray:
        """Method x point."""
        return np.asarray(self.ranks.mean(axis=1))

    @cached_property
    def area(self) -> np.ndarray:
        """Per method, the mean of `mean_regret` over the budget (area under the curve)."""
        edges = np.diff(self.share, prepend=0.0)
        return np.asarray(self.mean_regret @ edges)

    def _seed_mean(self, clip: bool) -> np.ndarray:
        return np.array(
            [[(np.clip(seeds, 0, 1) if clip else seeds).mean(axis=0) for seeds in row] for row in self.seeds]
        )

    def band(self, values: np.ndarray, level: float = 0.95, resamples: int = 500) -> tuple[np.ndarray, np.ndarray]:
        """Return a bootstrap interval over tasks of the mean of `values` (method x task x point): two arrays."""
        count = values.shape[1]
        draws = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=resamples) / count
        means = np.einsum("rt,mtg->rmg", draws, values, optimize=True)
        low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return low, high

    def frame(self) -> pd.DataFrame:
        """Return columns method, share, budget (mean over tasks), regret, rank."""
        methods = np.repeat(self.methods, len(self.share))
        return pd.DataFrame(
            {
                "method": methods,
                "share": np.tile(self.share, len(self.methods)),
                self.axis: np.tile(self.share * self.budget.mean(), len(self.methods)),
                "regret": self.mean_regret.ravel(),
                "rank": self.mean_rank.ravel(),
            }
        )


def anytime(curves: Curves, axis: str = "trials", bounds: pd.DataFrame | None = None, unequal: str = MATCH) -> Anytime:
    """Return regret over the budget of an axis.

    Args:
        curves: what is compared.
        axis: trials, steps or seconds; must be one of `curves.axes`.
        bounds: optional table with columns task, best and reference (scores that mean regret 0 and 1), such as a
            complete table's optimum and median; default: `Curves.bounds`.
        unequal: "match" cuts every method to the smallest budget of a task and says so, "refuse" raises when the
            numbers of trials differ. Steps and seconds always differ and are always matched.

    Raises:
        DataError: the axis has no figures, bounds do not fit, or budgets differ and are refused.
    """
    if axis not in curves.axes:
        known = f"it has {', '.join(curves.axes)}" if axis in AXES else f"axes are {', '.join(AXES)}"
        raise DataError(f"The curves table has no figures for the axis {axis!r}; {known}.")
    runs = _runs(curves, {"trials": "trial"}.get(axis, axis))
    budget, notes = _budgets(curves, axis, runs, unequal)
    share = _points(axis, budget)
    best, scale = _scales(curves, bounds)
    seeds = [
        [
            (_incumbents(runs[method, task], share * most) - least) / unit
            for task, most, least, unit in zip(curves.tasks, budget, best, scale, strict=True)
        ]
        for method in curves.methods
    ]
    return Anytime(axis, curves.methods, curves.tasks, budget, share, _worst_for_missing(seeds), scale, tuple(notes))


#: By method and task, each seed's positions on the axis and the losses of its best trial so far.
SeedCurves: TypeAlias = Mapping[tuple[str, str], Sequence[tuple[np.ndarray, np.ndarray]]]


def _runs(curves: Curves, column: str) -> SeedCurves:
    found: dict[tuple[str, str], list[tuple[np.ndarray, np.ndarray]]] = defaultdict(list)
    keys = curves.frame[CURVE].to_numpy()
    starts = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]).any(axis=1)])
    x, loss = curves.frame[column].to_numpy(float), curves.frame["loss"].to_numpy(float)
    for start, end in zip(starts, [*starts[1:], len(keys)], strict=True):
        method, task, _ = keys[start]
        found[method, task].append((x[start:end], np.fmin.accumulate(loss[start:end])))
    return found


def _budgets(curves: Curves, axis: str, runs: SeedCurves, unequal: str) -> tuple[np.ndarray, list[Note]]:
    """Return per task what every method could spend: the least over methods of the median over seeds."""
    spent = np.full((len(curves.methods), len(curves.tasks)), np.nan)
    for m, method in enumerate(curves.methods):
        for t, task in enumerate(curves.tasks):
            if ends := [x[-1] for x, loss in runs[method, task] if not np.isnan(loss[-1])]:
                spent[m, t] = np.floor(np.median(ends)) if axis == "trials" else np.median(ends)
    least, most = np.nanmin(spent, axis=0), np.nanmax(spent, axis=0)
    notes = []
    if axis == "trials" and (most > least).any():
        worst = int(np.argmax(most / least))
        note = ComparisonCode.UNEQUAL_TRIALS(
            curves.tasks[worst],
            unequal=int((most > least).sum()),
            tasks=len(least),
            method=curves.methods[int(np.nanargmin(spent[:, worst]))],
            least=int(least[worst]),
            most=int(most[worst]),
        )
        if unequal == REFUSE:
            raise DataError(f"{note} Run them with the same budget, or allow unequal budgets to be matched.")
        notes.append(note)
    return np.maximum(least, np.finfo(float).tiny), notes


def _points(axis: str, budget: np.ndarray) -> np.ndarray:
    trials = int(budget.max())
    if axis == "trials" and (budget == trials).all() and trials <= 2 * POINTS:
        return np.arange(1, trials + 1) / trials
    return np.arange(1, POINTS + 1) / POINTS


def _incumbents(runs: Sequence[tuple[np.ndarray, np.ndarray]], budget: np.ndarray) -> np.ndarray:
    """Return the best loss of each seed at each budget; infinite before its first finished trial, or without a seed."""
    found = np.full((max(1, len(runs)), len(budget)), np.inf)
    for row, (x, loss) in zip(found, runs, strict=False):
        index = np.searchsorted(x, budget * (1 + 1e-12), side="right") - 1
        row[:] = np.where(index >= 0, loss[np.maximum(index, 0)], np.inf)
    return np.where(np.isnan(found), np.inf, found)


def _scales(curves: Curves, bounds: pd.DataFrame | None) -> tuple[np.ndarray, np.ndarray]:
    """Return per task the loss of regret 0, and how much loss is regret 1."""
    done = curves.frame[curves.frame["loss"].notna()].groupby("task")["loss"].agg(["min", "max"])
    done = done.reindex(list(curves.tasks))
    if bounds is None:
        limits = curves.bounds.reindex(list(curves.tasks))
    else:
        limits = _given_bounds(curves, bounds)
    best = np.fmin(limits["best"].to_numpy(float), done["min"].to_numpy(float))
    scale = limits["reference"].to_numpy(float) - best
    # The median configuration is already the best: measure by the worst one seen; all equal: everything is a tie.
    scale = np.where(scale > 0, scale, done["max"].to_numpy(float) - best)
    return best, np.where(scale > 0, scale, 1.0)


def _given_bounds(curves: Curves, bounds: pd.DataFrame) -> pd.DataFrame:
    missing = {"task", "best", "reference"} - set(bounds.columns)
    if missing:
        raise DataError(f"bounds has no column {', '.join(sorted(missing))}; it needs task, best and reference.")
    limits = bounds.assign(task=bounds["task"].astype(str)).set_index("task")[["best", "reference"]]
    if not limits.index.is_unique:
        raise DataError("bounds names a task twice.")
    limits = limits.reindex(list(curves.tasks))
    if limits.isna().any().any():
        raise DataError(f"bounds has no figures for task {limits.index[limits.isna().any(axis=1)][0]!r}.")
    mode = curves.frame.drop_duplicates("task").set_index("task")["mode"].reindex(list(curves.tasks))
    return limits.apply(losses, modes=mode)


def _worst_for_missing(seeds: list[list[np.ndarray]]) -> tuple[tuple[np.ndarray, ...], ...]:
    """Replace missing values by the worst regret on that task at that budget, and at least 1."""
    filled: list[list[np.ndarray]] = [[] for _ in seeds]
    for t in range(len(seeds[0])):
        stacked = np.concatenate([row[t] for row in seeds])
        worst = np.where(np.isfinite(stacked), stacked, 1.0).max(axis=0, initial=1.0)
        for m, row in enumerate(seeds):
            filled[m].append(np.where(np.isfinite(row[t]), row[t], worst))
    return tuple(tuple(row) for row in filled)
