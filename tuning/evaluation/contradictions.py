"""Hold-out rows that contradict the folds: a model that does not keep what its scores over the folds promised."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from schedulers.direction import worth_of
from tuning.basics.wording import value_text
from tuning.evaluation.constant import ConstantPrediction
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import StudyData
from tuning.preprocessing.kinds import DATE, TEXT
from tuning.preprocessing.task import Prediction
from tuning.records.gains import LEAST_OF_CLASS, is_error

#: How a note of it begins; how many customers have one is counted by this.
CONTRADICTED = "the hold-out contradicts the folds"
KEPT = 0.5  # of what the folds promised over the constant; a model that keeps more of it is not much worse
SURE = 3.0  # standard errors of the difference
FAR = 0.1  # of a column's range: so far outside of it is more than the next rows' usual surprise
CLOCK = 0.9  # correlation with the order of rows; of a column that runs along with them the next values are always new
FEW_ROWS = 100


@dataclass(frozen=True)
class Promise:
    """What the folds said of a model, in the metric's own direction.

    score: over the folds, of the winner or of the ensemble. fold_scores: of the winner.
    """

    score: float
    fold_scores: tuple[float, ...]

    def broken(
        self, data: StudyData, metric: Metric, test_score: float, test_error: float, constant: ConstantPrediction
    ) -> bool:
        """Whether a model keeps less than half of what it promised over the constant, and not by chance.

        Not by chance: by more than three standard errors, those of the folds and of the hold-out together. Folds may
        agree by luck, so that theirs is at least the hold-out's, row for row.
        """
        if constant.test_score is None:
            return False
        promised = _gained(self.score, constant.score, metric)
        if not _gained(test_score, constant.test_score, metric) < KEPT * promised:
            return False
        short = worth_of(self.score, metric.mode) - worth_of(test_score, metric.mode)
        unseen = sum(len(valid) for _, valid in data.split.folds)
        spread = float(np.std(self.fold_scores)) / math.sqrt(max(1, len(self.fold_scores) - 1))
        return short > SURE * math.hypot(test_error, max(spread, test_error * math.sqrt(len(data.split.test) / unseen)))


def _gained(score: float, constant: float, metric: Metric) -> float:
    """What a score is better than the constant's: of an error the share of it that is gone."""
    gain = worth_of(score, metric.mode) - worth_of(constant, metric.mode)
    return gain if not is_error(metric.name) else gain / abs(constant) if constant else 0.0


def contradiction_note(
    promise: Promise,
    data: StudyData,
    metric: Metric,
    test_score: float | None,
    test_error: float | None,
    constant: ConstantPrediction | None,
    prediction: Prediction,
    *,
    leaks: bool,
) -> str:
    """What is said of a model that the hold-out contradicts, with the probable cause; empty of others, and of few rows.

    prediction: of the hold-out rows. leaks: whether a column may tell the target.
    """
    few = data.rare_rows is not None and data.rare_rows < LEAST_OF_CLASS
    if test_score is None or test_error is None or constant is None or few:
        return ""
    if not promise.broken(data, metric, test_score, test_error, constant):
        return ""
    here, there, nothing = (value_text(score) for score in (test_score, promise.score, constant.test_score))
    scores = f"{metric.name} {here} there, {there} on the folds, {nothing} of a constant"
    return f"{CONTRADICTED} ({scores}): {_cause(data, prediction, leaks)}"


def _cause(data: StudyData, prediction: Prediction, leaks: bool) -> str:
    """The most probable one, in words that `tuning.runs.report.failures` knows what to do about."""
    worst = _worst(data, prediction)
    found = _beyond(data, worst)
    if not found and not data.task.classification:
        found = _trend(data, prediction) or _odd_target(data, worst) or _moved(data)
    if found or leaks:
        return found or "a column may tell the target"
    search, held = len(data.split.search), len(data.split.test)
    if search < FEW_ROWS:
        return f"few rows, {search} to learn from and {held} held out"
    return "nothing in the columns tells why"


def _worst(data: StudyData, prediction: Prediction) -> np.ndarray:
    """The hold-out rows that make up most of the squared error, of classes that of the true one's probability."""
    test = data.split.test
    error = (data.y[test] - prediction.values) ** 2
    if data.task.classification:
        said = prediction.proba
        error = error > 0 if said is None else (1.0 - said[np.arange(len(test)), data.y[test]]) ** 2
    order = np.argsort(-error, kind="stable")
    most = np.cumsum(error[order]) <= 0.5 * error.sum()
    worst: np.ndarray = test[order[: int(most.sum()) + 1]]
    return worst


def _beyond(data: StudyData, worst: np.ndarray) -> str:
    """The column that goes farthest beyond what the search rows hold where the error is largest; a date's day as its
    four numbers are. One that runs along with the rows, as the day does, always goes beyond, and is no cause."""
    found: tuple[float, str] = (FAR, "")
    number = 0
    for column in data.columns:
        if column.kind == TEXT:
            continue
        values = data.raw.numbers[:, number]
        number += 4 if column.kind == DATE else 1
        seen, here = _finite(values[data.split.search]), _finite(values[worst])
        if not len(seen) or not len(here) or not (low := float(seen.min())) < (high := float(seen.max())):
            continue
        distances = np.maximum(low - here, here - high) / (high - low)
        if float(np.median(distances)) > found[0] and abs(_along(seen)) < CLOCK:
            at = float(here[distances.argmax()])
            unit = "" if column.kind == DATE else f", {value_text(at)} and not {value_text(low)} to {value_text(high)},"
            found = (
                float(np.median(distances)),
                f"{column.name!r} goes beyond what the search rows hold{unit} where the error is largest",
            )
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


def _trend(data: StudyData, prediction: Prediction) -> str:
    """Errors that rise or fall along the hold-out rows, by more than chance."""
    errors = data.y[data.split.test] - prediction.values
    along, count = _along(errors), len(errors)
    if not along**2 * (count - 2) > SURE**2 * (1 - along**2):  # Student's t of a correlation
        return ""
    slope = along * float(np.std(errors)) * math.sqrt(12 / (count**2 - 1))
    first, last = (float(errors.mean()) + slope * place * (count - 1) / 2 for place in (-1, 1))
    return f"the errors have a trend, from {value_text(first)} to {value_text(last)} along the hold-out rows"


def _along(values: np.ndarray) -> float:
    """The correlation of values with their order; 0 of constant ones."""
    spread = float(np.std(values))
    order = np.arange(len(values)) - (len(values) - 1) / 2
    return float(np.mean(values * order)) / (spread * float(np.std(order))) if spread > 0 else 0.0


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
