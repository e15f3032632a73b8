"""Between which numbers the target of a new row lies: from what a model said of rows that it had not seen.

Split conformal prediction (Lei et al., JASA 113, 2018) with the residuals of cross-validation (Barber et al., Annals of
Statistics 49, 2021, "jackknife" there: fold models are not kept).
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
SHARES = 1 - np.geomspace(1, 0.001, 40)  # of which quantiles are kept, closer together towards the largest
FEW = 5  # rows; where an interval leaves out fewer, its ends are the mean distance times a shape
TYPICAL_WEIGHS = 10.0  # rows: weight of the typical customer's mean distance, next to a customer's own rows
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
class Residuals:
    """How far the targets of unseen rows lay from what a model said of them.

    Attributes:
        rows: how many there were; of weighted ones how many equal ones would tell as much (Kish 1965).
        quantiles: of these distances, divided by how large they are at their predictions, at `SHARES`.
        growth: (power, low, high): distances grow by this power of the prediction's size, held between two sizes.
        bounds: between which numbers intervals lie; None where nothing holds them.
        mean: of these distances; of few rows drawn to that of the typical customer, where a pool knows that.
    """

    rows: int
    quantiles: tuple[float, ...]
    growth: tuple[float, float, float]
    bounds: Bounds | None
    mean: float

    @classmethod
    def of(
        cls,
        answers: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None,
        bounds: Bounds | None,
        typical: float | None = None,
    ) -> Residuals | None:
        """Return those of rows with these predictions and targets; None where no row counts.

        typical: the mean distance of the typical customer, in this one's unit; None where nobody knows it.
        """
        weight = np.ones(len(y)) if weight is None else weight
        counts = np.isfinite(answers) & (weight > 0)
        if not counts.any():
            return None
        answers, weight = answers[counts], weight[counts] / weight[counts].sum()
        rows = max(1, round(1 / float((weight**2).sum())))
        distances = np.abs(y[counts] - answers)
        growth, raw = _growth(answers, distances, weight), float(weight @ distances)
        distances = distances / _sizes(answers, growth)
        shares = np.minimum(1.0, SHARES * (1 + 1 / rows))
        quantiles = np.quantile(distances, shares, weights=weight, method="inverted_cdf")
        mean = float(weight @ distances)
        if typical is not None and raw > 0.0:
            mean *= (typical / raw) ** (TYPICAL_WEIGHS / (rows + TYPICAL_WEIGHS))
        return cls(rows, tuple(map(_short, quantiles)), growth, bounds, _short(mean))

    def ends(self, answers: np.ndarray, interval: float) -> tuple[np.ndarray, np.ndarray]:
        """Return (low, high) of predictions. interval: the share of targets that is to lie between them."""
        distance = self._distance(interval) * _sizes(answers, self.growth)
        low, high = answers - distance, answers + distance
        if self.bounds is None:
            return low, high
        # A prediction itself may lie beyond: of a model that was fitted on other rows.
        least, most = np.minimum(self.bounds.low, answers), np.maximum(self.bounds.high, answers)
        return np.maximum(low, least), np.minimum(high, most)

    def to_json(self) -> dict[str, object]:
        """As a saved model has them."""
        return {**vars(self), "bounds": None if self.bounds is None else self.bounds.to_json()}

    @classmethod
    def from_json(cls, values: Json | None) -> Residuals | None:
        """Return the opposite of `to_json`; None of a model that has none."""
        if values is None:
            return None
        power, low, high = values["growth"]
        bounds = Bounds.from_json(values["bounds"])
        return cls(values["rows"], tuple(values["quantiles"]), (power, low, high), bounds, values["mean"])

    def _distance(self, interval: float) -> float:
        """Within which a share of all targets lies.

        Few rows do not know their largest distances, but their mean. Those of many customers together are around that
        Student's t with four degrees of freedom (Shaw, Journal of Computational Finance 9, 2006).
        """
        known = max(0.0, min(1 - FEW / (self.rows + 1), SHARES[-1]))
        distance = float(np.interp(min(interval, known), SHARES, self.quantiles))
        if interval <= known:
            return distance
        root = math.sqrt(1 - interval**2)
        shape = 2 * math.sqrt(math.cos(math.acos(root) / 3) / root - 1)
        return max(distance, self.mean * shape)  # a larger share has no smaller interval


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _sizes(answers: np.ndarray, growth: tuple[float, float, float]) -> np.ndarray:
    """Return (n,) how large the residuals of predictions are, relative to those of the largest one."""
    power, low, high = growth
    return (np.clip(np.abs(answers), low, high) / high) ** power


def _growth(answers: np.ndarray, distances: np.ndarray, weight: np.ndarray) -> tuple[float, float, float]:
    """The power with which distances of that size are likeliest, under Laplace's distribution; 0 unless clearly so.

    weight: of rows, 1 together.
    """
    sizes = np.sort(np.abs(answers))
    low, high = float(sizes[int(SMALLEST * len(sizes))]), float(sizes[-1])
    if not 0.0 < low < high or not distances.any():
        return 0.0, 1.0, 1.0

    def cost(power: float) -> float:
        size = _sizes(answers, (power, low, high))
        margin = MARGIN * float((weight**2).sum()) if power else 0.0
        return math.log(float(weight @ (distances / size))) + float(weight @ np.log(size)) + margin

    power = min(POWERS, key=cost)
    return (power, low, high) if power else (0.0, 1.0, 1.0)
