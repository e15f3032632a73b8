"""Hold-out rows that contradict the folds: a model that does not keep what its scores over the folds promised."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from schedulers.direction import worth_of
from tuning.basics.documents import Json
from tuning.evaluation.constant import ConstantPrediction
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import StudyData
from tuning.notes import FitCode, Note
from tuning.preprocessing.kinds import DATE, TEXT
from tuning.preprocessing.task import Prediction
from tuning.records.gains import LEAST_OF_CLASS, is_error

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
) -> Note | None:
    """Return a note on a model that the hold-out contradicts, with the probable cause; None of others and of few rows.

    prediction: of the hold-out rows. leaks: whether a column may tell the target.
    """
    few = data.rare_rows is not None and data.rare_rows < LEAST_OF_CLASS
    if test_score is None or test_error is None or constant is None or few:
        return None
    if not promise.broken(data, metric, test_score, test_error, constant):
        return None
    scores = {"metric": metric.name, "test": test_score, "cv": promise.score, "constant": constant.test_score}
    return _Causes(data, prediction, scores).likeliest(leaks)


@dataclass(frozen=True)
class _Causes:
    """Why the hold-out may contradict a model. prediction: of its rows. scores: the note's values on the model."""

    data: StudyData
    prediction: Prediction
    scores: Json

    def likeliest(self, leaks: bool) -> Note:
        """Return the most probable cause. leaks: whether a column may tell the target."""
        worst = self._worst()
        found = self._column_beyond(worst)
        if not found and not self.data.task.classification:
            found = self._trend() or self._odd_target(worst) or self._shift()
        if found or leaks:
            return found or FitCode.CONTRADICTED_BY_LEAK(**self.scores)
        search, held = len(self.data.split.search), len(self.data.split.test)
        if search < FEW_ROWS:
            return FitCode.CONTRADICTED_BY_FEW_ROWS(**self.scores, search=search, held=held)
        return FitCode.CONTRADICTED(**self.scores)

    def _worst(self) -> np.ndarray:
        """Return the hold-out rows that make up most of the squared error, of classes that of the true one's
        probability."""
        y, test, said = self.data.y, self.data.split.test, self.prediction
        error = (y[test] - said.values) ** 2
        if self.data.task.classification:
            error = error > 0 if said.proba is None else (1.0 - said.proba[np.arange(len(test)), y[test]]) ** 2
        order = np.argsort(-error, kind="stable")
        most = np.cumsum(error[order]) <= 0.5 * error.sum()
        worst: np.ndarray = test[order[: int(most.sum()) + 1]]
        return worst

    def _column_beyond(self, worst: np.ndarray) -> Note | None:
        """Find the column that goes farthest beyond what the search rows hold where the error is largest.

        A date's day is looked at as its four numbers are. A column that runs along with the rows, as the day does,
        always goes beyond, and is no cause.
        """
        most, found, number = FAR, None, 0
        for column in self.data.columns:
            if column.kind == TEXT:
                continue
            values = self.data.raw.numbers[:, number]
            number += 4 if column.kind == DATE else 1
            seen, here = _finite(values[self.data.split.search]), _finite(values[worst])
            if not len(seen) or not len(here) or not (low := float(seen.min())) < (high := float(seen.max())):
                continue
            distances = np.maximum(low - here, here - high) / (high - low)
            if float(np.median(distances)) > most and abs(_along(seen)) < CLOCK:
                most, at = float(np.median(distances)), float(here[distances.argmax()])
                code = FitCode.CONTRADICTED_BY_DATES if column.kind == DATE else FitCode.CONTRADICTED_BY_COLUMN
                found = code(column.name, **self.scores, at=at, low=low, high=high)
        return found

    def _odd_target(self, worst: np.ndarray) -> Note | None:
        """Find a target far beyond all others where the error is largest; nothing where most of the hold-out's are."""
        y, split = self.data.y, self.data.split
        seen, here, held = y[split.search], y[worst], y[split.test]
        low, high = float(seen.min()), float(seen.max())
        if ((held > 2 * high - low) | (held < 2 * low - high)).mean() > 0.5:
            return None
        at = max((float(here.min()), float(here.max())), key=lambda value: max(low - value, value - high))
        if max(low - at, at - high) <= high - low:
            return None
        return FitCode.CONTRADICTED_BY_TARGET(**self.scores, at=at, low=low, high=high)

    def _trend(self) -> Note | None:
        """Find errors that rise or fall along the hold-out rows, by more than chance."""
        errors = self.data.y[self.data.split.test] - self.prediction.values
        along, count = _along(errors), len(errors)
        if not along**2 * (count - 2) > SURE**2 * (1 - along**2):  # Student's t of a correlation
            return None
        slope = along * float(np.std(errors)) * math.sqrt(12 / (count**2 - 1))
        first, last = (float(errors.mean()) + slope * place * (count - 1) / 2 for place in (-1, 1))
        return FitCode.CONTRADICTED_BY_TREND(**self.scores, first=first, last=last)

    def _shift(self) -> Note | None:
        """Find targets that are larger or smaller as a whole than those of the search rows."""
        seen, here = self.data.y[self.data.split.search], self.data.y[self.data.split.test]
        error = math.hypot(*(float(np.std(each)) / math.sqrt(len(each)) for each in (seen, here)))
        before, now = float(seen.mean()), float(here.mean())
        if not abs(now - before) > SURE * error:
            return None
        return FitCode.CONTRADICTED_BY_SHIFT(**self.scores, now=now, before=before)


def _along(values: np.ndarray) -> float:
    """Return the correlation of values with their order; 0 of constant ones."""
    spread = float(np.std(values))
    order = np.arange(len(values)) - (len(values) - 1) / 2
    return float(np.mean(values * order)) / (spread * float(np.std(order))) if spread > 0 else 0.0


def _finite(values: np.ndarray) -> np.ndarray:
    kept: np.ndarray = values[np.isfinite(values)]
    return kept
