"""What is predicted: regression, binary or multi-class classification, and what a model says about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from tuning.notes import DataCode, Note
from tuning.preprocessing.classes import Label
from tuning.preprocessing.dates import NEARLY_ALL
from tuning.preprocessing.notations import IS_CODE, is_duration, numbers_among, seeming

REGRESSION, BINARY, MULTICLASS = "regression", "binary", "multiclass"
FEW = 20  # different whole numbers
MOST_WHOLE = 2.0**63  # larger floats are whole because they are large
TASKS = (REGRESSION, BINARY, MULTICLASS)


@dataclass(frozen=True)
class Task:
    """kind: one of TASKS; classes: the class labels in the order of their codes, empty for regression.

    Of two classes of a binary task the second one is the positive one.
    """

    kind: str
    classes: tuple[Label, ...] = ()

    @property
    def classification(self) -> bool:
        return self.kind != REGRESSION

    @property
    def in_order(self) -> list[int]:
        """The codes of the classes in the order of scikit-learn's `classes_`, sorted; of more than two they are."""
        return np.argsort(self.classes).tolist() if self.kind == BINARY else list(range(len(self.classes)))

    @property
    def positive(self) -> Label | None:
        """The class whose probability, precision and recall are meant; None where there is no such class."""
        return self.classes[1] if self.kind == BINARY else None


@dataclass(frozen=True)
class Prediction:
    """A model's answer for n rows.

    values: (n,) predicted numbers, or class codes.
    proba: (n, classes) probabilities, or None where the model has none.
    decision: (n,) or (n, classes) decision values, or None. Metrics that take either one take these, as
        scikit-learn's scorers do: probabilities are rounded, and compare classes within a row.
    held: (n,) which numbers were held within what the target can be; None where none was.
    unseen: by column (n,) which rows hold a text that no training row had, where a saved model has looked for them.
    """

    values: np.ndarray
    proba: np.ndarray | None = None
    decision: np.ndarray | None = None
    held: np.ndarray | None = None
    unseen: Mapping[str, np.ndarray] | None = field(default=None, kw_only=True)

    @property
    def held_back(self) -> int:
        """How many numbers were held."""
        return 0 if self.held is None else int(self.held.sum())

    def take(self, rows: np.ndarray | slice) -> Prediction:
        """Return the answer for some of the rows, by position or by a mask."""
        others = (None if each is None else each[rows] for each in (self.proba, self.decision, self.held))
        return Prediction(self.values[rows], *others)

    def copy(self) -> Prediction:
        """Return a copy with arrays of its own."""
        others = (None if each is None else each.copy() for each in (self.proba, self.decision, self.held))
        return Prediction(self.values.copy(), *others)


def average(predictions: Sequence[Prediction], weights: Sequence[float], task: Task) -> Prediction:
    """Return the weighted mean of numbers, or of probabilities with the largest as the class; one stays as it is.

    Raises `ValueError` where a classifier among several has no probabilities.
    """
    if len(predictions) == 1:
        return predictions[0]
    answers = [prediction.proba if task.classification else prediction.values for prediction in predictions]
    known = [answer for answer in answers if answer is not None]
    if len(known) < len(answers):
        raise ValueError("a model without probabilities cannot be averaged with others")
    held = [prediction.held for prediction in predictions if prediction.held is not None]
    mean = as_prediction(np.average(known, axis=0, weights=weights), task)
    return replace(mean, held=np.logical_or.reduce(held)) if held else mean


def as_prediction(answer: np.ndarray, task: Task) -> Prediction:
    """Numbers (n,) or probabilities (n, classes) as a prediction."""
    return Prediction(answer.argmax(axis=1), answer) if task.classification else Prediction(answer)


def is_comparable(values: pd.Series) -> bool:
    """Return whether one value can be told from another; lists and the like cannot."""
    if isinstance(values.dtype, np.dtype) and values.dtype != object:
        return True
    try:
        values.nunique()
    except TypeError:
        return False
    return True


@dataclass(frozen=True)
class _Guess:
    """What one customer's target says.

    rows: those with a target, 0 where it is constant or of both kinds, numbers and text. odd: how many values are no
    numbers among numbers, and the first of them.
    """

    task: str
    why: Note
    rows: int
    odd: tuple[int, str] | None = None


def agreed_task(targets: Mapping[str, pd.Series], *, of_classes: bool | None = None) -> tuple[str, Note]:
    """Return the task that the customers with most rows suggest, each looked at by itself, and why.

    Text, booleans and categories are classes; so are just two whole numbers. All other numbers are numbers to predict,
    since few whole numbers are counts more often than classes. Numbers are also those in a column of text, when nearly
    all of its values are numbers, and none is a code such as 007; nothing but few whole numbers as text are classes.
    Values have to be comparable. A target that is constant, or half numbers and half text, has no vote, unless they all
    are like that.

    of_classes: what else is known of whole numbers, as from the metric: True where they are classes, however many they
    are, False where they are numbers, None where nothing says.
    """
    guesses = {name: _guess(values, of_classes) for name, values in targets.items()}
    votes: Counter[str] = Counter()
    for guess in guesses.values():
        votes[guess.task] += guess.rows
    task = max(votes, key=lambda kind: (votes[kind], -list(votes).index(kind)))
    agreeing = [guess for guess in guesses.values() if guess.task == task]
    why = max(agreeing, key=lambda guess: guess.rows).why
    whys = [why]
    for name, guess in guesses.items():
        if guess.task != task:
            whys.append(DataCode.OTHER_TASK(name, task=guess.task, why=guess.why))
        elif guess.odd:
            whys.append(DataCode.ODD_VALUES(name, count=guess.odd[0], example=guess.odd[1]))
    return task, DataCode.TASK_GUESS(whys=whys)


def _guess(target: pd.Series, of_classes: bool | None) -> _Guess:
    values = target.dropna()
    numbers, distinct, odd, clear = values, values.nunique(), None, True
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    on_purpose = False  # numbers as text, without any other text that would make text of numbers
    if is_duration(values):
        why = DataCode.BY_NUMBERS(distinct=int(distinct), rows=len(values))
        return _Guess(REGRESSION, why, len(values) if distinct > 1 else 0)
    if not numeric and _may_hold_numbers(values):
        found, wrong = numbers_among(values)
        numeric = (~wrong).mean() >= NEARLY_ALL
        clear = numeric or wrong.mean() >= NEARLY_ALL
        if numeric:
            numbers, distinct = found.dropna(), found.nunique()
            odd = (int(wrong.sum()), str(values[wrong].iloc[0])[:40]) if wrong.any() else None
            on_purpose = not odd and isinstance(values.iloc[0], str)
    code = DataCode.BY_CLASSES
    if numeric:
        whole = bool(((numbers.abs() < MOST_WHOLE) & (numbers == numbers.round())).all()) if len(numbers) else False
        few = whole and distinct <= FEW and distinct * 10 <= len(numbers)
        if not (whole and (distinct == 2 or (few and on_purpose) if of_classes is None else of_classes)):
            code = DataCode.BY_COUNTS if few and of_classes is None else DataCode.BY_NUMBERS
            why = code(distinct=int(distinct), rows=len(numbers))
            return _Guess(REGRESSION, why, len(values) if distinct > 1 else 0, odd)
        code = DataCode.BY_WHOLE_NUMBERS
        numbers = numbers.astype(np.int64)
    clear = clear and distinct > 1  # a constant says nothing, and its customer gets no model
    labels = sorted(map(str, numbers.unique()))
    said = seeming(labels) if code is DataCode.BY_CLASSES else None
    why = code(distinct=int(distinct), labels=[*labels[:5], *["…"] * (len(labels) > 5)], seeming=said)
    return _Guess(BINARY if distinct <= 2 else MULTICLASS, why, len(values) if clear else 0, odd)


def _may_hold_numbers(values: pd.Series) -> bool:
    """Return whether values of no numeric type may be numbers: text and decimals, not booleans, dates or categories."""
    plain = isinstance(values.dtype, pd.StringDtype) or values.dtype == np.dtype(object)
    if not plain or not len(values) or pd.api.types.infer_dtype(values, skipna=True) == "boolean":
        return False
    return not any(re.match(IS_CODE, str(value)) for value in values.unique())  # pandas cannot make text of all bytes
