"""XGBoost's Boosters as a trial's own process and the actors of a group have them: rows, files and predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tuning.models.base import EncodedRows, of_positive
from tuning.models.compute import threads
from tuning.models.estimators import float32
from tuning.preprocessing.task import BINARY, Prediction, Task, as_prediction

if TYPE_CHECKING:
    from xgboost import Booster, DMatrix


def feature_types(rows: EncodedRows) -> list[str]:
    """XGBoost's type of each column: a number or a category."""
    types = ["q"] * rows.X.shape[1]
    for column in rows.categorical:
        types[column] = "c"
    return types


def plain_matrix(rows: EncodedRows) -> DMatrix:
    """Return rows that a Booster predicts, without bins."""
    import xgboost

    return xgboost.DMatrix(float32(rows), feature_types=feature_types(rows), enable_categorical=True, nthread=threads())


def load_booster(content: bytes) -> Booster:
    """Return the Booster in a file's content."""
    import xgboost

    return xgboost.Booster({"nthread": threads()}, model_file=bytearray(content))


def rounds_of(content: bytes | None) -> int:
    """Return how many rounds the Booster in a file's content has; 0 without one."""
    return int(load_booster(content).num_boosted_rounds()) if content else 0


def prediction_of(raw: np.ndarray, task: Task) -> Prediction:
    """Return what a Booster's prediction means."""
    raw = raw.astype(np.float64)
    if task.kind == BINARY:
        raw = of_positive(raw)
    elif task.classification:
        raw = raw.reshape(-1, len(task.classes))
        raw /= raw.sum(axis=1, keepdims=True)
    return as_prediction(raw, task)
