"""How sure a score on the hold-out rows is: its standard error over these rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import StudyData
from tuning.preprocessing.task import Prediction, average

GROUPS = 20  # of rows, each left out once: so many scores cost less than one fit


def hold_out_error(
    predictions: Sequence[Prediction], weights: Sequence[float], data: StudyData, metric: Metric
) -> float | None:
    """Of the score of models' mean, by the delete-a-group jackknife (Kott, Journal of Official Statistics 17, 2001).

    None with fewer rows than groups, where the metric is not defined without one of them, and of a user's own metric,
    which may take long.
    """
    test = data.split.test
    if len(test) < GROUPS or metric.function is not None:
        return None
    weight = None if data.weight is None else data.weight[test]
    groups = np.random.default_rng(0).permutation(len(test)) % GROUPS
    scores = []
    try:
        mean = average(predictions, weights, data.task)
        for group in range(GROUPS):
            kept = groups != group
            scores.append(metric.score(data.y[test][kept], _of(mean, kept), None if weight is None else weight[kept]))
    except ValueError:  # of one class, or of a model without probabilities
        return None
    spread = math.sqrt((GROUPS - 1) * float(np.var(scores)))
    return spread if math.isfinite(spread) else None


def _of(prediction: Prediction, kept: np.ndarray) -> Prediction:
    proba, decision = (None if each is None else each[kept] for each in (prediction.proba, prediction.decision))
    return Prediction(prediction.values[kept], proba, decision)
