"""The blocks of a comparison: what is paired and tested, one value per method and block.

A block is a task, its seeds averaged. With a single task the seeds are the blocks: the answer then holds for that
task alone, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuning.compare.analysis.anytime import Anytime
from tuning.compare.analysis.curves import CURVE, Curves
from tuning.compare.analysis.statistics import TIE_DECIMALS

TASK, SEED = "task", "seed"


@dataclass(frozen=True)
class Blocks:
    """What is paired and tested: one value per method and block.

    Attributes:
        values: regret at the end of the budget, method x block; it is ranked and tested.
        clipped: the same with every seed clipped to [0, 1], for means.
        cost: seconds (else steps) to the end of the budget; NaN where a method has none, None without figures.
        cost_axis: "seconds" or "steps".
        unit: "task" or "seed".
    """

    values: np.ndarray
    clipped: np.ndarray
    cost: np.ndarray | None
    cost_axis: str | None
    unit: str

    @property
    def count(self) -> int:
        return int(self.values.shape[1])


def blocks(curves: Curves, result: Anytime) -> Blocks:
    """Return the blocks at the end of the budget of `result`."""
    cost_axis = _cost_axis(curves, result.axis)
    costs = None if cost_axis is None else _costs(curves, result, cost_axis)
    if len(result.tasks) > 1:
        cost = None if costs is None else np.array([[_mean(seeds) for seeds in row] for row in costs])
        return Blocks(result.regret[:, :, -1], result.clipped[:, :, -1], cost, cost_axis, TASK)
    finals = [row[0][:, -1] for row in result.seeds]
    paired = min(len(seeds) for seeds in finals)
    values = np.array([seeds[:paired] for seeds in finals])
    cost = None if costs is None else np.array([_padded(row[0], paired) for row in costs])
    return Blocks(np.round(values, TIE_DECIMALS), np.clip(values, 0, 1), cost, cost_axis, SEED)


def _cost_axis(curves: Curves, axis: str) -> str | None:
    """Return seconds, else steps; never the axis of the budget itself, on which all methods spend the same."""
    return next((name for name in ("seconds", "steps") if name in curves.axes and name != axis), None)


def _costs(curves: Curves, result: Anytime, cost_axis: str) -> list[list[np.ndarray]]:
    """Return per method and task each seed's cost up to the end of the budget."""
    column = {"trials": "trial"}.get(result.axis, result.axis)
    budget = dict(zip(result.tasks, result.budget, strict=True))
    frame = curves.frame
    within = frame[column] <= frame["task"].map(budget) * (1 + 1e-12)
    last = frame[within].groupby(CURVE, sort=False)[cost_axis].last().reset_index()
    finished = frame.groupby(CURVE, sort=False)["loss"].count().reset_index()
    last = last[(last.merge(finished, on=CURVE)["loss"] > 0).to_numpy()]
    found = {key: group[cost_axis].to_numpy(float) for key, group in last.groupby(["method", "task"], sort=False)}
    return [[found.get((method, task), np.empty(0)) for task in result.tasks] for method in result.methods]


def _mean(seeds: np.ndarray) -> float:
    return float(seeds.mean()) if len(seeds) else np.nan


def _padded(seeds: np.ndarray, count: int) -> np.ndarray:
    return np.r_[seeds[:count], np.full(max(0, count - len(seeds)), np.nan)]
