"""What a study's model is compared with: its first trial, a constant, or what the user has predicted before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tuning.basics.wording import shorten
from tuning.definition.baselines import GivenBaseline, baseline_name, is_first_trial
from tuning.errors import CustomerError
from tuning.evaluation.constant import ConstantPrediction
from tuning.evaluation.hold_out_error import hold_out_score
from tuning.evaluation.metrics import Metric, needs_scores
from tuning.evaluation.refit import Refits
from tuning.evaluation.study_data import StudyData
from tuning.models.base import of_positive
from tuning.notes import DataCode, FitCode, Note
from tuning.preprocessing.classes import Label, find_label
from tuning.preprocessing.notations import numbers_among
from tuning.preprocessing.roles import check_predictions
from tuning.preprocessing.task import BINARY, Prediction, as_prediction
from tuning.records.schema import FINISHED, TrialRecord


@dataclass(frozen=True)
class ScoredBaseline:
    """A baseline with its scores.

    Attributes:
        name: as the customer's row shows it; of a trial its family.
        score: on the folds.
        test_score: on the hold-out rows; None where there is none.
        said: what it says of the hold-out rows; None where that is not needed.
    """

    name: str
    score: float
    test_score: float | None = None
    said: Prediction | None = None

    @classmethod
    def of_trial(cls, record: TrialRecord) -> ScoredBaseline:
        """Return a trial that finished, as its record tells it."""
        assert record.score is not None
        return cls(record.family, record.score)


def find_baseline(
    given: GivenBaseline,
    records: Sequence[TrialRecord],
    constant: ConstantPrediction | None,
    refits: Refits,
    data: StudyData,
    metric: Metric,
) -> tuple[ScoredBaseline | None, Note | None]:
    """Return a study's baseline, and why there is none, or none on the hold-out.

    given: as the definition has it. records: of all trials. constant: of the study.
    """
    if is_first_trial(given):
        first = next((record for record in records if record.trial == 0), None)
        if first is None or first.state != FINISHED or first.score is None:
            return None, _why_no_trial(first)
        said = refits.of(first).prediction
        test_score, note = hold_out_score(said, data, metric)
        return ScoredBaseline(first.family, first.score, test_score, said), note
    name = baseline_name(given)
    if data.given is None:
        if constant is None:
            return None, FitCode.NO_GAIN_OVER_CONSTANT(metric=metric.name)
        return ScoredBaseline(name, constant.score, constant.test_score, constant.answers(data)), None
    whole = given_prediction(data, metric)
    try:
        scores = [data.score(whole.take(rows), rows, metric) for rows in data.unseen]
    except ValueError as error:
        return None, FitCode.NO_GAIN(name, error=str(error))
    said = whole.take(data.split.test)
    test_score, note = hold_out_score(said, data, metric)
    return ScoredBaseline(name, math.fsum(scores) / len(scores), test_score, said), note


def _why_no_trial(first: TrialRecord | None) -> Note | None:
    if first is None or first.state == FINISHED:
        return None
    return FitCode.NO_GAIN_OVER_TRIAL(state=first.state, why=first.reason)


def given_prediction(data: StudyData, metric: Metric) -> Prediction:
    """Return what the user has predicted for all of a customer's rows; `CustomerError` says what is wrong with it.

    Of a regression they are numbers. Under a metric that needs more than labels they are probabilities of the positive
    class; under others labels, or, where not all of them are labels of the two classes, such probabilities.
    """
    assert data.given is not None
    check_predictions(data.given)
    values, task = data.given.astype(object), data.task
    numbers, wrong = numbers_among(values)
    if not task.classification:
        _check(values, wrong | ~np.isfinite(numbers.to_numpy()), DataCode.BASELINE_NO_NUMBER)
        return Prediction(numbers.to_numpy())
    off = wrong | ~((numbers >= 0) & (numbers <= 1)).to_numpy()
    if needs_scores(metric.name, task.kind, metric.function):
        _check(values, off, DataCode.BASELINE_NO_PROBABILITY, positive=task.positive)
        return as_prediction(of_positive(numbers.to_numpy()), task)
    found = {value: find_label(_plain(value), task.classes) for value in values.unique()}
    unknown = values.map({value: label is None for value, label in found.items()}).to_numpy(dtype=bool)
    if task.kind == BINARY and unknown.any():
        classes = [*task.classes]
        _check(values, off & unknown, DataCode.BASELINE_NEITHER, classes=classes, positive=task.positive)
        _check(values, off, DataCode.BASELINE_NO_PROBABILITY, positive=task.positive)
        return as_prediction(of_positive(numbers.to_numpy()), task)
    _check(values, unknown, DataCode.BASELINE_NO_CLASS, classes=[*task.classes])
    codes = {value: task.classes.index(label) for value, label in found.items() if label is not None}
    return Prediction(values.map(codes).to_numpy(dtype=np.int64))


def _plain(value: object) -> Label:
    plain = value.item() if hasattr(value, "item") else value
    return plain if isinstance(plain, str | int | float | bool) else str(plain)


def _check(values: pd.Series, wrong: np.ndarray, code: DataCode, **needed: object) -> None:
    """`CustomerError` with the first value that is wrong."""
    if wrong.any():
        place = int(wrong.argmax())
        first = _plain(values.iloc[place])
        first = shorten(first, 40) if isinstance(first, str) else first
        where = {"wrong": int(wrong.sum()), "rows": len(values), "row": place + 1}
        raise CustomerError(code(str(values.name), first=first, **where, **needed))
