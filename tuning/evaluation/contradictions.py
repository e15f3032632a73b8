"""Hold-out rows that contradict the folds: a model that does not keep what its scores over the folds promised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuning.basics.wording import value_text
from tuning.evaluation.constant import ConstantPrediction
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import StudyData
from tuning.preprocessing.kinds import DATE, TEXT
from tuning.preprocessing.task import Prediction, average
from tuning.records.gains import is_error, user_metric
from tuning.records.user_scores import user_score

#: How a note of it begins; how many customers have one is counted by this.
CONTRADICTED = "the hold-out contradicts the folds"
KEPT = 0.5  # of what the folds promised over the constant; a model that keeps more of it is not much worse
SURE = 3.0  # standard errors of the difference
CHANCE = 0.001  # that one more score like the folds' is so much worse
FAR = 0.1  # of a column's range: so far outside of it is more than the next rows' usual surprise
FEW_ROWS, FEW_HELD = 100, 20


@dataclass(frozen=True)
class Promise:
    """What the folds said of a model, in the metric's own direction.

    score: over the folds, of the winner or of the ensemble. fold_scores: of the winner. larger: whether larger is
    better.
    """

    score: float
    fold_scores: tuple[float, ...]
    larger: bool

    def broken(
        self, data: StudyData, metric: Metric, test_score: float, test_error: float | None, constant: ConstantPrediction
    ) -> bool:
        """Whether a model keeps less than half of what it promised over the constant, and not by chance.

        Not by chance: by more than three standard errors, those of the folds and of the hold-out together; or by more
        than one further score like the folds', of so many rows, would be 999 times of 1,000 (Student's t). The latter
        is sure where a few rows decide the score, and so its standard error too.
        """
        if constant.test_score is None or not len(data.split.test):
            return False
        promised = self._worth(self.score, constant.score, metric)
        if not self._worth(test_score, constant.test_score, metric) < KEPT * promised:
            return False
        short = self.score - test_score if self.larger else test_score - self.score
        count = len(self.fold_scores)
        if count < 2 or not math.isfinite(short):
            return False
        spread = float(np.std(self.fold_scores, ddof=1))
        if test_error is not None and short > SURE * math.hypot(spread / math.sqrt(count), test_error):
            return True
        from scipy.special import stdtrit

        rows = sum(len(unseen) for _, unseen in data.split.folds) / count
        error = spread * math.sqrt(1 / count + rows / len(data.split.test))
        return short > float(stdtrit(count - 1, 1.0 - CHANCE)) * error

    def _worth(self, score: float, constant: float, metric: Metric) -> float:
        """What a score is better than the constant's: of an error the share of it that is gone."""
        gain = score - constant if self.larger else constant - score
        return gain if not is_error(metric.name) else gain / abs(constant) if constant else 0.0


def contradiction_note(
    promise: Promise,
    data: StudyData,
    metric: Metric,
    test_score: float | None,
    test_error: float | None,
    constant: ConstantPrediction | None,
    predictions: Sequence[Prediction],
    weights: Sequence[float],
    *,
    leaks: bool,
) -> str:
    """What is said of a model that the hold-out contradicts, with the probable cause; empty of others.

    predictions: of the hold-out rows, of models whose mean counts. leaks: whether a column may tell the target.
    """
    if test_score is None or constant is None:
        return ""
    if not promise.broken(data, metric, test_score, test_error, constant):
        return ""
    here, there, nothing = (
        value_text(user_score(score, metric.name)) for score in (test_score, promise.score, constant.test_score)
    )
    scores = f"{user_metric(metric.name)} {here} there, {there} on the folds, {nothing} of a constant"
    return f"{CONTRADICTED} ({scores}): {_cause(data, average(predictions, weights, data.task), leaks)}"


def _cause(data: StudyData, prediction: Prediction, leaks: bool) -> str:
    """The most probable one, in words that `tuning.runs.report.failures` knows what to do about."""
    worst = _worst(data, prediction)
    numbers = not data.task.classification
    found = _odd_target(data, worst) if numbers else ""
    if found := found or _beyond(data, worst) or (_moved(data) if numbers else ""):
        return found
    if leaks:
        return "a column may tell the target"
    search, held = len(data.split.search), len(data.split.test)
    if search < FEW_ROWS or held < FEW_HELD:
        return f"few rows, {search} to learn from and {held} held out"
    return "nothing in the columns tells why"


def _worst(data: StudyData, prediction: Prediction) -> np.ndarray:
    """The hold-out rows that make up most of the squared error; of classes all of them."""
    test = data.split.test
    if data.task.classification:
        return test
    error = (data.y[test] - prediction.values) ** 2
    order = np.argsort(-error, kind="stable")
    most = np.cumsum(error[order]) <= 0.5 * error.sum()
    worst: np.ndarray = test[order[: int(most.sum()) + 1]]
    return worst


def _beyond(data: StudyData, worst: np.ndarray) -> str:
    """The column that goes farthest beyond what the search rows hold; a date's day as its four numbers are."""
    found: tuple[float, str] = (FAR, "")
    number = 0
    for column in data.columns:
        if column.kind == TEXT:
            continue
        values = data.raw.numbers[:, number]
        number += 4 if column.kind == DATE else 1
        seen, here = _finite(values[data.split.search]), _finite(values[worst])
        if not len(seen) or not len(here):
            continue
        low, high = float(seen.min()), float(seen.max())
        at = max((float(here.min()), float(here.max())), key=lambda value: max(low - value, value - high))
        distance = max(low - at, at - high) / (high - low) if high > low else 0.0
        if distance > found[0]:
            unit = "" if column.kind == DATE else f", {value_text(at)} and not {value_text(low)} to {value_text(high)},"
            found = distance, f"{column.name!r} goes beyond what the search rows hold{unit} where the error is largest"
    return found[1]


def _odd_target(data: StudyData, worst: np.ndarray) -> str:
    """A target far beyond all others, where the error is largest; nothing where most of the hold-out's are."""
    seen, here, held = data.y[data.split.search], data.y[worst], data.y[data.split.test]
    low, high = float(seen.min()), float(seen.max())
    if ((held > 2 * high - low) | (held < 2 * low - high)).mean() > 0.5:
        return ""
    at = max((float(here.min()), float(here.max())), key=lambda value: max(low - value, value - high))
    if max(low - at, at - high) <= high - low:
        return ""
    return f"a target of {value_text(at)} where the search rows have {value_text(low)} to {value_text(high)}"


def _moved(data: StudyData) -> str:
    """Targets that are larger or smaller as a whole than those of the search rows."""
    seen, here = data.y[data.split.search], data.y[data.split.test]
    error = math.hypot(*(float(np.std(each)) / math.sqrt(len(each)) for each in (seen, here)))
    before, now = float(seen.mean()), float(here.mean())
    if not abs(now - before) > SURE * error:
        return ""
    return f"the target has moved, its mean is {value_text(now)} there and {value_text(before)} in the search rows"


def _finite(values: np.ndarray) -> np.ndarray:
    kept: np.ndarray = values[np.isfinite(values)]
    return kept
