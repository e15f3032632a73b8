"""What a study's unseen rows say about its model, beside a score: those that the folds left out, and the hold-out's."""

from __future__ import annotations

import math

import numpy as np

from tuning.errors import CustomerError
from tuning.evaluation.fast_scores import LOG_LOSS
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import StudyData
from tuning.models.base import Matrix
from tuning.models.pooled import Level
from tuning.models.residuals import Residuals
from tuning.preprocessing.task import as_prediction, calibrated

TEMPERATURES = np.exp(np.linspace(-0.5, 0.5, 21))
PRIOR = 30.0  # the log loss of all rows together that a temperature of e, or of 1 / e, has to save


def is_calibrated(data: StudyData, metric: Metric) -> bool:
    """Whether rows that the folds left out are asked: for distances of numbers, and for what a log loss scores."""
    return not data.task.classification or (metric.name == LOG_LOSS and metric.function is None)


def residuals_of(left_out: np.ndarray | None, held_out: np.ndarray, data: StudyData) -> Residuals | None:
    """How far targets lie from what a regression said of rows that it had not seen; None where there are none.

    left_out: what it said of the rows that the folds leave out, one fold after the other; None where that was not kept.
    held_out: of the hold-out rows.
    """
    if data.task.classification:
        return None
    answers, rows = [held_out], [data.split.test]
    if left_out is not None:
        answers.insert(0, left_out)
        rows[:0] = [data.split.search[valid] for _, valid in data.split.folds]
    positions = np.concatenate(rows)
    weight = None if data.weight is None else data.weight[positions]
    within = data.bounds_of(Matrix(np.empty((len(data.y), 0)), data.y))
    return Residuals.of(np.concatenate(answers), data.y[positions], weight, within, _typical_distance(data))


def _typical_distance(data: StudyData) -> float | None:
    """The mean distance of the typical customer in this one's unit, where the run's pool knows it."""
    if data.pool is None or data.pool.typical_distance is None:
        return None
    try:
        return data.pool.typical_distance * Level.of(data.y[data.split.search], data.task).spread
    except CustomerError:  # its targets have no width to measure by
        return None


def temperature_of(left_out: np.ndarray | None, data: StudyData, metric: Metric) -> float:
    """With which temperature probabilities have the least log loss on rows that the folds left out (Guo et al., On
    calibration of modern neural networks, ICML 2017), drawn to 1, which few rows do not leave; 1 for other metrics.

    left_out: as of `residuals_of`.
    """
    if left_out is None or not data.task.classification or not is_calibrated(data, metric):
        return 1.0
    rows = np.concatenate([data.split.search[valid] for _, valid in data.split.folds])
    said = as_prediction(left_out, data.task)
    weight = None if data.weight is None else data.weight[rows]

    def cost(temperature: float) -> float:
        score = metric.score(data.y[rows], calibrated(said, temperature), weight)
        return len(rows) * score + PRIOR * math.log(temperature) ** 2

    return float(min(TEMPERATURES, key=cost)) if math.isfinite(cost(1.0)) else 1.0
