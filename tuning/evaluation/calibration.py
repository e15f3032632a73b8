"""What a study's unseen rows say about its model, beside a score: those that the folds left out, and the hold-out's."""

from __future__ import annotations

import numpy as np

from tuning.evaluation.study_data import StudyData
from tuning.models.base import Matrix
from tuning.models.residuals import Residuals


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
    return Residuals.of(np.concatenate(answers), data.y[positions], weight, within)
