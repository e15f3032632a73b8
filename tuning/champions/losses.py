"""The loss of single rows, by which two models are compared: smaller is better, and each row stands for itself."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np

from schedulers.direction import worth_of
from tuning.evaluation.metrics import Metric
from tuning.preprocessing.task import Prediction
from tuning.records.gains import ERRORS

SQUARED, ABSOLUTE, LOG, ZERO_ONE = "squared error", "absolute error", "log loss", "0/1"
# Metrics that are a mean of these losses over rows, or rise and fall with it on the same rows.
OF_ROWS = {
    "mse": SQUARED,
    "rmse": SQUARED,
    "r2": SQUARED,
    "mae": ABSOLUTE,
    "d2_absolute_error_score": ABSOLUTE,
    "log_loss": LOG,
    "d2_log_loss_score": LOG,
    "accuracy": ZERO_ONE,
}
# What is like them, by the beginning of its name; of what is like none, the loss is the task's own. Of numbers it is
# the absolute error where that is part of the metric's name.
LIKE = {
    "balanced_accuracy": ZERO_ONE,
    "f1": ZERO_ONE,
    "precision": ZERO_ONE,
    "recall": ZERO_ONE,
    "jaccard": ZERO_ONE,
    "matthews": ZERO_ONE,
    "negative_likelihood": ZERO_ONE,
    "positive_likelihood": ZERO_ONE,
}
# Where the log loss stands for a metric that does not punish a wrong certainty without end, no chance is below this.
LEAST_CHANCE = 0.001


@dataclass(frozen=True)
class RowLoss:
    """What one row costs.

    name: `SQUARED`, `ABSOLUTE`, `LOG` or `ZERO_ONE`.
    of_rows: whether it says all of the metric; else the metric itself is looked at, too (`MetricSoFar`).
    """

    name: str
    of_rows: bool

    @property
    def bound(self) -> float:
        """How large it can be."""
        return 1.0 if self.name == ZERO_ONE else math.inf

    def of(self, y: np.ndarray, prediction: Prediction) -> np.ndarray:
        """(n,) losses of a prediction for true numbers or class codes (n,)."""
        if self.name == SQUARED:
            return (y - prediction.values) ** 2
        if self.name == ABSOLUTE:
            return np.abs(y - prediction.values)
        if self.name == ZERO_ONE:
            return (y != prediction.values).astype(float)
        assert prediction.proba is not None
        chance = prediction.proba[np.arange(len(y)), y].astype(float)
        least = float(np.finfo(prediction.proba.dtype).eps) if self.of_rows else LEAST_CHANCE
        return -np.log(np.clip(chance, least, 1.0 - least))


def row_loss(metric: Metric, probabilities: bool = True) -> RowLoss:
    """The loss by which models are compared under a metric.

    probabilities: whether both classifiers have some; without them a class is right or wrong.
    """
    known = OF_ROWS if metric.function is None else {}
    like = next((loss for name, loss in LIKE.items() if metric.name.startswith(name)), None)
    if metric.function is not None:  # a user's own says only what it wants to be given
        like = None if getattr(metric.function, "needs_proba", False) else ZERO_ONE
    if not metric.task.classification:
        absolute = metric.function is None and "_absolute_" in ERRORS.get(metric.name, metric.name)
        other = ABSOLUTE if absolute else SQUARED
        return RowLoss(known.get(metric.name, other), metric.name in known)
    name = known.get(metric.name, like or LOG)
    if name == LOG and not probabilities:
        return RowLoss(ZERO_ONE, of_rows=False)
    return RowLoss(name, metric.name in known)


def block_means(losses: np.ndarray, blocks: np.ndarray | None) -> np.ndarray:
    """Losses (n,) of rows that belong together, such as those of one group or one moment, as one.

    blocks: (n,) which block each row is of; None where each row is its own.
    """
    if blocks is None:
        return losses
    _, places = np.unique(blocks, return_inverse=True)
    sums: np.ndarray = np.bincount(places, weights=losses)
    return sums / np.bincount(places)


@dataclass(frozen=True)
class MetricSoFar:
    """A metric that is none of rows: the mean of what each week says, by its rows.

    Predictions of several weeks are not ranked together: both models were fitted again in between, so that would
    compare the weeks' models and not the rows. So three numbers are enough to keep.

    rows: of the weeks in which both had a score (a week of one class has no ROC AUC).
    champion, challenger: their mean scores; greater is better.
    """

    rows: int = 0
    champion: float = 0.0
    challenger: float = 0.0

    def after(self, metric: Metric, y: np.ndarray, champion: Prediction, challenger: Prediction) -> MetricSoFar:
        """With the new rows of a week."""
        if not len(y):
            return self
        scores = [_score(metric, y, prediction) for prediction in (champion, challenger)]
        if not np.isfinite(scores).all():
            return self
        share = len(y) / (self.rows + len(y))
        return replace(
            self,
            rows=self.rows + len(y),
            champion=self.champion + share * (scores[0] - self.champion),
            challenger=self.challenger + share * (scores[1] - self.challenger),
        )


def _score(metric: Metric, y: np.ndarray, prediction: Prediction) -> float:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some warn of rows for which they are not defined, and answer NaN
            return worth_of(metric.score(y, prediction), metric.mode)
    except ValueError:  # others refuse them
        return math.nan
