"""The same comparison on rows that no search has seen: the winners' hold-out scores.

A search that fits the folds better need not give better models; both answers belong side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from tuning.compare.analysis.anytime import Anytime
from tuning.compare.analysis.curves import losses
from tuning.compare.analysis.statistics import TIE_DECIMALS, Counts, SignedRank, counts, wilcoxon


@dataclass(frozen=True)
class HoldOut:
    """methods x tasks: the mean over seeds of the winners' hold-out loss, on the task's scale of regret.

    A search without a winner counts as worst on its task.
    """

    methods: tuple[str, ...]
    losses: np.ndarray

    @property
    def ranks(self) -> np.ndarray:
        """Mean rank of each method."""
        return np.asarray(stats.rankdata(self.losses, axis=0).mean(axis=1))

    def against(self, method: str, reference: str) -> tuple[Counts, SignedRank]:
        """Return wins, ties and losses of a method, and the uncorrected test."""
        differences = self.losses[self.methods.index(method)] - self.losses[self.methods.index(reference)]
        return counts(np.round(differences, TIE_DECIMALS)), wilcoxon(differences)


def hold_out(frame: pd.DataFrame, result: Anytime) -> HoldOut | None:
    """Return the winners' hold-out scores, from columns method, task, seed, score (missing without one), mode.

    None with one task, or when no search has a score.
    """
    scored = frame[frame["score"].notna() & frame["task"].isin(result.tasks)]
    if scored.empty or len(result.tasks) < 2:
        return None
    loss = losses(scored["score"], scored["mode"])
    scale = dict(zip(result.tasks, result.scale, strict=True))
    loss = loss / scored["task"].map(scale).astype(float)
    worst = loss.groupby(scored["task"]).max()
    wanted = frame[frame["task"].isin(worst.index)]
    filled = loss.reindex(wanted.index).fillna(wanted["task"].map(worst))
    table = filled.groupby([wanted["method"], wanted["task"]]).mean().unstack()
    table = table.reindex(index=list(result.methods)).fillna(worst)
    return HoldOut(result.methods, table.to_numpy(float))
