"""Errors of all contenders on all rounds, and what follows from them, by the comparison's own statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

TIE = 0.001  # errors that differ by less than a thousandth are equal


@dataclass(frozen=True)
class Judgement:
    """errors: columns set, customer, repetition, contender, error. core_s: contender → CPU seconds per customer."""

    errors: pd.DataFrame
    core_s: dict[str, float]

    def table(self) -> pd.DataFrame:
        """Customer × contender: the mean error over the repetitions; index (set, customer)."""
        means = self.errors.groupby(["set", "customer", "contender"], sort=False)["error"].mean()
        return means.unstack("contender")

    def against(self, ours: str, part: str | None = None) -> pd.DataFrame:
        """Per contender: mean rank, better/tie/worse of `ours` against it, median and p of the paired difference."""
        from scipy.stats import wilcoxon

        errors = self.table() if part is None else self.table().loc[[part]]
        ranks = errors.rank(axis=1).mean()
        rows: dict[str, dict[str, Any]] = {}
        for name in errors:
            ratio = np.log(errors[ours] / errors[name])
            better, worse = int((ratio < -TIE).sum()), int((ratio > TIE).sum())
            decided = ratio[ratio.abs() > TIE]
            rows[str(name)] = {
                "mean_rank": ranks[name],
                "better": better,
                "tie": len(errors) - better - worse,
                "worse": worse,
                "share": better / max(1, better + worse),
                "median": float(np.expm1(ratio.median())),
                "p": float(wilcoxon(decided).pvalue) if len(decided) > 5 else float("nan"),
                "core_s": self.core_s.get(str(name), float("nan")),
            }
        return pd.DataFrame(rows).T.sort_values("mean_rank")

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
            "significantly_better_than_ours": {part: names for part, names in lost.items() if names},
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 4)
