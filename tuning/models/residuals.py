"""Between which numbers the target of a new row lies: from what a model said of rows that it had not seen.

Split conformal prediction (Lei et al., JASA 113, 2018) with the residuals of cross-validation (Barber et al., Annals of
Statistics 49, 2021, "jackknife" there: fold models are not kept). A model keeps at most forty quantiles of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tuning.basics.documents import Json
from tuning.errors import IntervalError
from tuning.models.bounds import Bounds
from tuning.preprocessing.task import Task

PREDICTION, LOW, HIGH = "prediction", "prediction_low", "prediction_high"
QUANTILES = 40  # at most, that are kept
OUTERMOST = 0.001  # of very many rows: so much of them lies beyond the outermost of these
FEW = 5  # rows; where an interval leaves out fewer, its ends are the mean distance times a shape
TYPICAL_WEIGHS = 10.0  # rows: so much the typical customer's mean distance counts beside a customer's own
SMALLEST = 0.05  # predictions nearer to 0 than this share of them are as uncertain as that one
POWERS = (0.0, 0.5, 1.0)  # of predictions, by which residuals may grow
MARGIN = 2.0  # by how much a likelihood has to be better with a power, in logarithms
DIGITS = 5


def check_interval(interval: float | None, task: Task | None = None) -> None:
    """Raise `IntervalError` for an interval outside of 0 to 1, or for a target of classes; None asks for none."""
    if interval is None:
        return
    if not 0 < interval < 1:
        hint = f" {interval:g} % is {interval / 100:g}." if 1 <= interval < 100 else ""
        raise IntervalError(
            f"interval: {interval:g} is no share of the rows between 0 and 1, such as 0.8 for four of five.{hint}"
        )
    if task is not None and task.classification:
        raise IntervalError(
            "interval: it is for numbers, and the model answers classes. What it is sure of is in their probabilities: "
            "predict_proba, and the columns probability_… of `tuning predict`."
        )


@dataclass(frozen=True)
class Growth:
    """How residuals grow with predictions: by a power of their size, held between two sizes.

    Attributes:
        power: 0 where they are equally large everywhere.
        low, high: the sizes; beyond them residuals are taken to be as there.
    """

    power: float = 0.0
    low: float = 1.0
    high: float = 1.0

    def __call__(self, answers: np.ndarray) -> np.ndarray:
        """(n,) how large the residuals of predictions are, beside those of the largest one."""
        return (np.clip(np.abs(answers), self.low, self.high) / self.high) ** self.power


@dataclass(frozen=True)
class Residuals:
    """How far the targets of unseen rows lay from what a model said of them.

    Attributes:
        rows: how many there were; of weighted ones how many equal ones would tell as much (Kish 1965).
        quantiles: of these distances, divided by `growth`, the smallest first: those of `_ranks(rows)`.
        growth: of the distances with the prediction.
        bounds: between which numbers intervals lie; None where nothing holds them.
        mean: of these distances; of few rows drawn to that of the typical customer, where a pool knows that.
    """

    rows: int
    quantiles: tuple[float, ...]
    growth: Growth = Growth()
    bounds: Bounds | None = None
    mean: float = 0.0

    @classmethod
    def of(
        cls,
        answers: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None,
        bounds: Bounds | None,
        typical: float | None = None,
    ) -> Residuals | None:
        """Those of rows with these predictions and targets; None where no row counts.

        typical: the mean distance of the typical customer, in this one's unit; None where nobody knows it.
        """
        weight = np.ones(len(y)) if weight is None else weight
        counts = np.isfinite(answers) & (weight > 0)
        if not counts.any():
            return None
        answers, weight = answers[counts], weight[counts] / weight[counts].sum()
        distances = np.abs(y[counts] - answers)
        growth = _growth(answers, distances, weight)
        raw = float(weight @ distances)
        distances = distances / growth(answers)
        order = np.argsort(distances, kind="stable")
        rows = max(1, round(1 / float((weight**2).sum())))
        # A row of weight w stands for w of the ranks 1 to `rows`, and lies in the middle of them.
        ranks = 0.5 + (np.cumsum(weight[order]) - weight[order] / 2) * rows
        quantiles = np.interp(_ranks(rows), ranks, distances[order])
        mean = float(weight @ distances)
        if typical is not None and raw > 0.0:
            mean *= (typical / raw) ** (TYPICAL_WEIGHS / (rows + TYPICAL_WEIGHS))
        return cls(rows, tuple(map(_short, quantiles)), growth, bounds, _short(mean))

    def ends(self, answers: np.ndarray, interval: float) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) of predictions. interval: the share of targets that is to lie between them."""
        distance = self._distance(interval) * self.growth(answers)
        low, high = answers - distance, answers + distance
        if self.bounds is None:
            return low, high
        # A prediction itself may lie beyond: of a model that was fitted on other rows.
        least, most = np.minimum(self.bounds.low, answers), np.maximum(self.bounds.high, answers)
        return np.maximum(low, least), np.minimum(high, most)

    def to_json(self) -> dict[str, object]:
        """As a saved model has them."""
        growth = self.growth
        return {
            "rows": self.rows,
            "quantiles": self.quantiles,
            "growth": [growth.power, growth.low, growth.high] if growth.power else None,
            "bounds": None if self.bounds is None else self.bounds.to_json(),
            "mean": self.mean,
        }

    @classmethod
    def from_json(cls, values: Json | None) -> Residuals | None:
        """The opposite of `to_json`; None of a model that has none."""
        if values is None:
            return None
        growth, bounds = Growth(*values["growth"] or ()), Bounds.from_json(values["bounds"])
        return cls(values["rows"], tuple(values["quantiles"]), growth, bounds, values["mean"])

    def _distance(self, interval: float) -> float:
        """Within which a share of all targets lies: of n distances the one of rank (n + 1) × share.

        Few rows do not know their largest distances, but their mean; `_shape` says how distances lie around that.
        """
        known = 1 - FEW / (self.rows + 1)
        share = max(0.0, min(interval, known, 1 - OUTERMOST))
        distance = float(np.interp((self.rows + 1) * share, (0.0, *_ranks(self.rows)), (0.0, *self.quantiles)))
        if share == interval:
            return distance
        if interval > known:
            return max(distance, self.mean * _shape(interval))  # a larger share has no smaller interval
        return distance * _shape(interval) / _shape(share)


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _ranks(rows: int) -> np.ndarray:
    """Of the quantiles that are kept of so many distances: all of few, else closer together towards the largest."""
    if rows <= QUANTILES:
        return np.arange(1.0, rows + 1)
    return rows + 1 - np.geomspace(rows, max(1.0, OUTERMOST * rows), QUANTILES)


def _growth(answers: np.ndarray, distances: np.ndarray, weight: np.ndarray) -> Growth:
    """The power with which distances of that size are likeliest, as of Laplace's distribution; 0 unless clearly so.

    weight: of rows, 1 together.
    """
    sizes = np.sort(np.abs(answers))
    low, high = float(sizes[int(SMALLEST * len(sizes))]), float(sizes[-1])
    if not 0.0 < low < high or not distances.any():
        return Growth()
    found, best = Growth(), math.inf
    for power in POWERS:
        growth = Growth(power, low, high)
        size = growth(answers)
        unlikely = math.log(float(weight @ (distances / size))) + float(weight @ np.log(size))
        unlikely += (MARGIN if power else 0.0) * float((weight**2).sum())
        if unlikely < best:
            found, best = growth, unlikely
    return found if found.power else Growth()


def _shape(share: float) -> float:
    """Within how much of their mean a share of distances lies: those of many customers together are Student's t with
    four degrees of freedom (Shaw, Journal of Computational Finance 9, 2006)."""
    root = math.sqrt(1 - share**2)
    return 2 * math.sqrt(math.cos(math.acos(root) / 3) / root - 1)
