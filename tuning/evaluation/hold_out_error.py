"""A score on the hold-out rows, and how sure it is, and a gain: standard errors over these rows."""

from __future__ import annotations

import math

import numpy as np

from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import StudyData
from tuning.notes import FitCode, Note
from tuning.preprocessing.task import Prediction
from tuning.records.gains import ROW_GROUPS, in_unit


def hold_out_score(prediction: Prediction, data: StudyData, metric: Metric) -> tuple[float | None, Note | None]:
    """Return the score of a prediction for the hold-out rows, and why there is none."""
    test = data.split.test
    undefined = FitCode.NO_TEST_SCORE(metric=metric.name, rows=len(test))
    if not metric.defined_for(data.y[test], data.weight_of(test)):
        return None, undefined
    try:
        score = data.score(prediction, test, metric)
    except ValueError as error:
        return None, FitCode.NO_TEST_SCORE_HERE(rows=len(test), error=str(error))
    return (score, None) if math.isfinite(score) else (None, undefined)


def scores_without(prediction: Prediction, data: StudyData, metric: Metric) -> np.ndarray | None:
    """Return (20,) the scores of a prediction for the hold-out rows, each without another twentieth of them.

    None with fewer rows than that, and where the metric is not defined without one of the groups.
    """
    test = data.split.test
    if len(test) < ROW_GROUPS:
        return None
    groups = np.random.default_rng(0).permutation(len(test)) % ROW_GROUPS
    scores = []
    try:
        for group in range(ROW_GROUPS):
            kept = groups != group
            scores.append(data.score(prediction.take(kept), test[kept], metric))
    except (Exception, SystemExit):  # of one class, of a model without probabilities, of the user's metric
        return None
    return np.array(scores)


def hold_out_error(scores: np.ndarray | None) -> float | None:
    """The standard error of a score, or of the difference of two, by the delete-a-group jackknife (Kott, Journal of
    Official Statistics 17, 2001). scores: of `scores_without`, or their differences, which the same rows make."""
    if scores is None:
        return None
    spread = math.sqrt((ROW_GROUPS - 1) * float(np.var(scores)))
    return spread if math.isfinite(spread) else None


def gain_error(
    scores: np.ndarray | None, other: Prediction | None, score: float | None, data: StudyData, metric: Metric
) -> float | None:
    """Return the standard error of a gain, in its unit.

    scores: of the model, by `scores_without`. other: what it is compared with. score: of that.
    """
    others = None if scores is None or other is None or score is None else scores_without(other, data, metric)
    error = None if others is None else hold_out_error(scores - others)
    return None if error is None or score is None else in_unit(error, score, metric.name)
