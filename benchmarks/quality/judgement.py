"""Errors of all contenders on all rounds, and what follows from them, by the comparison's own statistics."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

REGRET_AT = (1, 5, 6, 8, 10, 20, 50)
TIE = 0.001  # errors that differ by less than a thousandth are equal


@dataclass(frozen=True)
class Paired:
    """Errors of one contender against another's, customer by customer.

    better, tie, worse: customers. median: of the relative difference. p: of Wilcoxon's test of those that differ; NaN
    of fewer than six.
    """

    better: int
    tie: int
    worse: int
    median: float
    p: float

    @classmethod
    def of(cls, ratio: pd.Series) -> Paired:
        """ratio: logarithms of errors over the other's."""
        from scipy.stats import wilcoxon

        better, worse = int((ratio < -TIE).sum()), int((ratio > TIE).sum())
        decided = ratio[ratio.abs() > TIE]
        p = float(wilcoxon(decided).pvalue) if len(decided) > 5 else float("nan")
        return cls(better, len(ratio) - better - worse, worse, float(np.expm1(ratio.median())), p)


@dataclass(frozen=True)
class Judgement:
    """errors: columns set, customer, repetition, contender, error. core_s: contender → CPU seconds per customer.

    trial_errors: contender → round → the errors of its trials on the folds, in the order of the search.
    """

    errors: pd.DataFrame
    core_s: dict[str, float]
    trial_errors: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def table(self) -> pd.DataFrame:
        """Customer × contender: the mean error over the repetitions; index (set, customer)."""
        means = self.errors.groupby(["set", "customer", "contender"], sort=False)["error"].mean()
        return means.unstack("contender")

    def against(self, ours: str, part: str | None = None) -> pd.DataFrame:
        """Per contender: mean rank, better/tie/worse of `ours` against it, median and p of the paired difference."""
        errors = self.table() if part is None else self.table().loc[[part]]
        ranks = errors.rank(axis=1).mean()
        rows: dict[str, dict[str, Any]] = {}
        for name in errors:
            found = Paired.of(np.log(errors[ours] / errors[name]))
            rows[str(name)] = {
                "mean_rank": ranks[name],
                **asdict(found),
                "share": found.better / max(1, found.better + found.worse),
                "core_s": self.core_s.get(str(name), float("nan")),
            }
        return pd.DataFrame(rows).T.sort_values("mean_rank")

    def regret_at(self, trials: Sequence[int] = REGRET_AT) -> dict[str, dict[str, float]]:
        """contender → number of trials → mean normalised regret of the best trial so far.

        0 is the best trial that any of our contenders found for the round, 1 the median of all their trials, or worse.
        """
        rounds_: dict[str, list[float]] = {}
        for found in self.trial_errors.values():
            for key, errors in found.items():
                rounds_.setdefault(key, []).extend(error for error in errors if math.isfinite(error))
        scales = {key: (min(errors), statistics.median(errors)) for key, errors in rounds_.items() if errors}
        return {
            name: {
                str(count): _rounded(np.mean([_regret(found.get(key, [])[:count], *scales[key]) for key in scales]))
                for count in trials
                if any(len(errors) >= count for errors in found.values())
            }
            for name, found in self.trial_errors.items()
        }

    def figures(self, ours: str) -> dict[str, Any]:
        """The JSON object of the command line; `wins_…` are shares of customers, ties out."""
        found = self.against(ours)
        lost = {
            part: [
                name
                for name, row in self.against(ours, part).iterrows()
                if name != ours and row["p"] < 0.05 and row["median"] > 0
            ]
            for part in self.errors["set"].unique()
        }
        return {
            "contender": ours,
            "customers": len(self.table()),
            "mean_rank": _rounded(found["mean_rank"][ours]),
            "mean_ranks": {name: _rounded(value) for name, value in found["mean_rank"].items()},
            "wins_vs_random_forest": _rounded(found["share"].get("random_forest")),
            "median_error_vs_random_forest": _rounded(found["median"].get("random_forest")),
            "wins_vs_flaml": _rounded(found["share"].get("flaml")),
            "core_s_per_customer": _rounded(self.core_s.get(ours)),
            "regret_at": self.regret_at(),
            "significantly_better_than_ours": {part: names for part, names in lost.items() if names},
        }


def _regret(errors: list[float], best: float, median: float) -> float:
    found = min(errors, default=math.inf)
    return 0.0 if found <= best else min(1.0, (found - best) / (median - best))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 4)


def interval(differences: np.ndarray | Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Mean with its Student t interval; unbounded for one figure."""
    count = len(differences)
    mean = float(np.mean(differences))
    if count < 2:
        return mean, float("-inf"), float("inf")
    from scipy.stats import t

    half = float(t.ppf(0.5 + level / 2, count - 1) * np.std(differences, ddof=1) / np.sqrt(count))
    return mean, mean - half, mean + half
