"""Common metrics without checks: the figures of scikit-learn's scorers in a fiftieth of the time.

A scorer checks and converts its input for 0.25 to 1.5 ms per call, in each fold and step, which is more than a
small fit takes. What it checks is known here: arrays of one length, class codes 0 to k - 1, probabilities that
sum to one. A score that is not finite is none (`quick_score` returns None), and scikit-learn's scorer is asked,
so that undefined cases and their messages are its own. tests/unit/evaluation/test_fast_scores.py compares both.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tuning.preprocessing.task import BINARY, Prediction, Task

LOG_LOSS = "log_loss"
Score = Callable[["np.ndarray", Prediction, Task], float]


def quick_score(name: str, y: np.ndarray, prediction: Prediction, task: Task) -> float | None:
    """Return the unweighted score, or None where scikit-learn's scorer has to be asked."""
    if not task.classification:
        of_numbers = REGRESSION.get(name)
        score = math.nan if of_numbers is None else float(of_numbers(y, prediction.values))
    else:
        of_classes = CLASSIFICATION.get(name)
        score = math.nan if of_classes is None else float(of_classes(y, prediction, task))
    return score if math.isfinite(score) else None


def quick_scores(name: str, y: np.ndarray, values: np.ndarray) -> np.ndarray | None:
    """Return the same for several answers (k, n) to a regression at once; None where one of them has no quick score."""
    function = REGRESSION.get(name)
    scores = None if function is None else function(y, values)
    return scores if scores is not None and np.isfinite(scores).all() else None


def _mean(values: np.ndarray) -> np.ndarray:
    """Return what `values.mean(axis=-1)` is, in a third of the time for a few rows."""
    found: np.ndarray = np.add.reduce(values, axis=-1) / values.shape[-1]
    return found


def _mse(y: np.ndarray, values: np.ndarray) -> np.ndarray:
    error = y - values
    return _mean(error * error)


def _rmse(y: np.ndarray, values: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.sqrt(_mse(y, values))
    return found


def _mae(y: np.ndarray, values: np.ndarray) -> np.ndarray:
    return _mean(abs(y - values))


def _r2(y: np.ndarray, values: np.ndarray) -> np.ndarray:
    error, spread = y - values, y - y.mean()
    total = float((spread * spread).sum())
    found: np.ndarray = 1.0 - np.add.reduce(error * error, axis=-1) / (total if total > 0.0 else math.nan)
    return found


def _accuracy(y: np.ndarray, prediction: Prediction, _: Task) -> float:
    return float((y == prediction.values).mean())


def _balanced_accuracy(y: np.ndarray, prediction: Prediction, task: Task) -> float:
    present = np.bincount(y, minlength=len(task.classes))
    right = np.bincount(y[y == prediction.values], minlength=len(task.classes))
    return float((right[present > 0] / present[present > 0]).mean())


def _f1_by_class(y: np.ndarray, prediction: Prediction, task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(F1, rows, whether it occurs at all) of each class; 0 where a class is never right, as scikit-learn has it."""
    k = len(task.classes)
    present, predicted = np.bincount(y, minlength=k), np.bincount(prediction.values, minlength=k)
    right = np.bincount(y[y == prediction.values], minlength=k)
    return 2.0 * right / np.maximum(present + predicted, 1), present, present + predicted > 0


def _f1(y: np.ndarray, prediction: Prediction, task: Task) -> float:
    if task.kind != BINARY:
        return math.nan
    f1, _, occurs = _f1_by_class(y, prediction, task)
    return float(f1[1]) if occurs[1] else math.nan


def _f1_macro(y: np.ndarray, prediction: Prediction, task: Task) -> float:
    f1, _, occurs = _f1_by_class(y, prediction, task)
    return float(f1[occurs].mean())


def _f1_weighted(y: np.ndarray, prediction: Prediction, task: Task) -> float:
    f1, present, _ = _f1_by_class(y, prediction, task)
    return float((f1 * present).sum() / present.sum())


def _roc_auc(y: np.ndarray, prediction: Prediction, task: Task) -> float:
    """Area under the ROC curve by its corners; tied values are one corner."""
    if task.kind != BINARY:
        return math.nan
    value = prediction.decision
    if value is None and prediction.proba is not None:
        value = prediction.proba[:, 1]
    if value is None or not math.isfinite(float(value.sum())):
        return math.nan
    order = np.argsort(-value, kind="stable")
    value, positive = value[order], y[order]
    corners = np.append(np.flatnonzero(value[1:] != value[:-1]), len(value) - 1)
    true = np.concatenate(([0.0], positive.cumsum()[corners]))
    false = np.concatenate(([0.0], 1.0 + corners - true[1:]))
    area = float(((false[1:] - false[:-1]) * (true[1:] + true[:-1])).sum()) / 2.0
    pairs = float(true[-1] * false[-1])
    return area / pairs if pairs > 0.0 else math.nan


def log_loss(y: np.ndarray, prediction: Prediction, task: Task, weight: np.ndarray | None = None) -> float:
    """scikit-learn's scorer takes the classes from `y`, so it refuses rows that lack one; here they are known.

    NaN without probabilities, and where all rows weigh nothing.
    """
    if prediction.proba is None or (weight is not None and not weight.any()):
        return math.nan
    eps = np.finfo(prediction.proba.dtype).eps
    if task.kind == BINARY:
        predicted = np.where(y == 1, prediction.proba[:, 1], 1.0 - prediction.proba[:, 1])
    else:
        predicted = prediction.proba[np.arange(len(y)), y]
    return float(np.average(-np.log(np.clip(predicted, eps, 1.0 - eps)), weights=weight))


REGRESSION: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "mae": _mae,
    "mse": _mse,
    "rmse": _rmse,
    "r2": _r2,
}
CLASSIFICATION: dict[str, Score] = {
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "f1": _f1,
    "f1_macro": _f1_macro,
    "f1_weighted": _f1_weighted,
    LOG_LOSS: log_loss,
    "roc_auc": _roc_auc,
}
