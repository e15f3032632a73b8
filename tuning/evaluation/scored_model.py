"""A study's model with its scores on the hold-out, and with the residuals that its intervals are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tuning.errors import CustomerError
from tuning.evaluation.hold_out_error import hold_out_error, hold_out_score, scores_without
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import StudyData
from tuning.evaluation.winner import StudyOutcome
from tuning.models.base import EncodedRows
from tuning.models.customer_model import CustomerModel
from tuning.models.member import Member
from tuning.models.pooled import TargetScale
from tuning.models.residuals import Residuals
from tuning.preprocessing.task import Prediction, average


def on_hold_out(
    outcome: StudyOutcome,
    members: Sequence[Member],
    said: Sequence[Prediction],
    left_out: np.ndarray | None,
    data: StudyData,
    metric: Metric,
    customer: str,
) -> tuple[StudyOutcome, np.ndarray | None]:
    """Return an outcome with a model fitted on the search rows and scored on the hold-out, and its scores.

    said: what each member says of the hold-out rows. left_out: as of `residuals_of`. scores: of `scores_without`.
    """
    mean = average(said, [member.weight for member in members], data.task)
    test_score, note = hold_out_score(mean, data, metric)
    scores = None if test_score is None else scores_without(mean, data, metric)
    found = replace(
        outcome,
        model=model_of(members, data, customer, residuals_of(left_out, mean.values, data)),
        test_score=test_score,
        test_error=hold_out_error(scores),
        held_back=None if all(member.bounds is None for member in members) else mean.held_back,
        notes=() if note is None else (note,),
    )
    return found, scores


def model_of(members: Sequence[Member], data: StudyData, customer: str, residuals: Residuals | None) -> CustomerModel:
    """Return the model of a customer that these members make."""
    return CustomerModel(
        customer, data.task, tuple(members), data.example, data.preparation, residuals=residuals, width=data.width
    )


def residuals_of(left_out: np.ndarray | None, held_out: np.ndarray, data: StudyData) -> Residuals | None:
    """Return how far targets lie from what a regression said of rows that it had not seen; None where there are none.

    left_out: what it said of the rows that the folds leave out, one fold after the other; None where that was not kept.
    held_out: of the hold-out rows.
    """
    if data.task.classification:
        return None
    answers, rows = [held_out], [data.split.test]
    if left_out is not None:
        answers.insert(0, left_out)
        rows[:0] = data.unseen
    positions = np.concatenate(rows)
    within = data.bounds_of(EncodedRows(np.empty((len(data.y), 0)), data.y))
    return Residuals.of(
        np.concatenate(answers), data.y[positions], data.weight_of(positions), within, _typical_distance(data)
    )


def _typical_distance(data: StudyData) -> float | None:
    """Return the mean distance of the typical customer in this one's unit, where the run's pool knows it."""
    if data.pool is None or data.pool.typical_distance is None:
        return None
    try:
        return data.pool.typical_distance * TargetScale.of(data.y[data.split.search], data.task).spread
    except CustomerError:  # its targets have no width to measure by
        return None
