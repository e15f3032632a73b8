"""Columns with a role of their own: target, weights, groups, moments, predictions. Each is checked per customer."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tuning.basics.documents import Json
from tuning.errors import CustomerError
from tuning.notes import DataCode, Note
from tuning.preprocessing.classes import Label, find_label, guess_positive, read_classes
from tuning.preprocessing.dates import ISO, NEARLY_ALL, UNDECIDED, date_format, parse_dates
from tuning.preprocessing.notations import numbers_among, seeming
from tuning.preprocessing.task import BINARY, REGRESSION, Task, is_comparable

LARGEST = 1e150  # of a target
FAR, FEW = 1000.0, 0.02  # how many interquartile ranges from the median a target is odd, if at most so many rows are
MAX_CLASSES = 50  # more are believed only where a class has two rows or more on average


def read_target(values: pd.Series, task: str) -> tuple[pd.Series, Note | None]:
    """Return the target, and a note on cells that are no numbers and so are missing, where numbers are needed.

    Those are numbers to predict, and the two numbers of a binary task. A `CustomerError` says that too many of the
    values are none.
    """
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values, None
    if task != REGRESSION and not (task == BINARY and _distinct(values) > 2):
        return values, None
    numbers, wrong = numbers_among(values)
    if not wrong.any():
        return (numbers if task == REGRESSION else values), None
    count, total = int(wrong.sum()), int(values.notna().sum())
    first: Json = {"first": str(values[wrong].iloc[0])[:40], "row": int(wrong.argmax()) + 1}
    few = total - count >= NEARLY_ALL * total
    if task == BINARY and not (few and _distinct(numbers) == 2):
        return values, None
    if few:
        return numbers, DataCode.TARGET_CELLS(wrong=count, rows=total, **first)
    said = seeming(values[wrong].map(str).unique().tolist())
    raise CustomerError(
        DataCode.TARGET_OF_TEXT(str(values.name), wrong=count, count=total, most=1 - NEARLY_ALL, seeming=said, **first)
    )


def far_target_note(y: np.ndarray) -> Note | None:
    """Return a note on single targets (n,) that are far from all others: whoever mistypes one spoils the model."""
    most = np.abs(y).max()
    if most <= FAR * np.median(np.abs(y)):  # the usual case, in microseconds
        return None
    low, middle, high = np.percentile(y, [25, 50, 75])
    far = np.flatnonzero(np.abs(y - middle) > FAR * (high - low))
    if high == low or not 0 < len(far) <= max(1.0, FEW * len(y)):
        return None
    at = float(y[far[np.argmax(np.abs(y[far] - middle))]])
    return DataCode.FAR_TARGET(value=at, low=float(low), high=float(high))


def _distinct(values: pd.Series) -> int:
    try:
        return int(values.nunique())
    except TypeError:  # lists or the like
        return 0


def encode_target(
    values: pd.Series, task: str, positive: Label | None = None, *, required: bool = False
) -> tuple[np.ndarray, Task]:
    """Return numbers for regression, class codes otherwise; `CustomerError` for an unusable target.

    positive: the positive class of a binary task. A customer without it gets one by `guess_positive`, or, when it is
    required, an error.
    """
    name = str(values.name)
    if task == REGRESSION:
        y = values.to_numpy(dtype=np.float64)
        if not np.isfinite(y).all():
            raise _infinite("target", name, y)
        if (most := float(np.abs(y).max())) > LARGEST:
            raise CustomerError(DataCode.TARGET_TOO_LARGE(name, value=most, most=LARGEST))
        if (y == y[0]).all():
            raise CustomerError(DataCode.TARGET_CONSTANT(name, value=float(y[0])))
        return y, Task(task)
    if pd.api.types.is_float_dtype(values.dtype) and np.isinf(y := values.to_numpy(dtype=np.float64)).any():
        raise _infinite("target", name, y)
    codes, classes = read_classes(values)
    if len(classes) < 2:
        raise CustomerError(DataCode.TARGET_CONSTANT(name, value=classes[0]))
    if task == BINARY and len(classes) > 2:
        raise CustomerError(DataCode.NOT_BINARY(name, count=len(classes), classes=classes[:5]))
    if len(classes) > MAX_CLASSES and 2 * len(classes) > len(values):
        raise CustomerError(DataCode.MANY_CLASSES(name, count=len(classes), rows=len(values)))
    if task == BINARY and _positive(values, classes, positive, required) == classes[0]:
        return 1 - codes, Task(task, classes[::-1])
    return codes, Task(task, classes)


def _positive(values: pd.Series, classes: tuple[Label, ...], wanted: Label | None, required: bool) -> Label:
    found = None if wanted is None else find_label(wanted, classes)
    if found is not None:
        return found
    if required:
        raise CustomerError(DataCode.NO_POSITIVE(str(values.name), positive=wanted, classes=classes))
    guess = guess_positive([values])
    return classes[1] if guess is None else guess[0]


def _infinite(role: str, name: str, values: np.ndarray) -> CustomerError:
    return CustomerError(DataCode.INFINITE(name, role=role, count=int((~np.isfinite(values)).sum())))


def read_weights(values: pd.Series) -> np.ndarray:
    """Return (n,) sample weights; `CustomerError` for a missing, negative or infinite one, or none above zero."""
    name, weights = str(values.name), numbers_among(values)[0].to_numpy()
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        raise CustomerError(DataCode.WRONG_WEIGHTS(name, rows=int(wrong.sum()), row=int(wrong.argmax()) + 1))
    if not (weights > 0).any():
        raise CustomerError(DataCode.NO_WEIGHT(name))
    return weights


def check_predictions(values: pd.Series) -> None:
    """Raise `CustomerError` where a row has no prediction of the user's own."""
    check_plain(values)
    missing = values.isna().to_numpy()
    if missing.any():
        places = {"missing": int(missing.sum()), "rows": len(values), "row": int(missing.argmax()) + 1}
        raise CustomerError(DataCode.BASELINE_EMPTY(str(values.name), **places))


def read_groups(values: pd.Series) -> np.ndarray:
    """Return (n,) a code per group; rows without one are a group together."""
    check_plain(values)
    codes, groups = pd.factorize(values)
    codes[codes < 0] = len(groups)
    return codes


def read_moments(values: pd.Series, dates: str | None = None) -> np.ndarray:
    """Return (n,) sortable numbers of a column of numbers, dates or text; `CustomerError` for a missing one.

    dates: how dates in text are written, as the definition says it; None to guess from all of them.
    """
    name = str(values.name)
    missing = int(values.isna().sum())
    if missing:
        raise CustomerError(DataCode.TIME_EMPTY(name, rows=missing))
    if pd.api.types.is_numeric_dtype(values.dtype):
        moments = values.to_numpy(dtype=np.float64)
        if not np.isfinite(moments).all():
            raise _infinite("time column", name, moments)
        return moments
    if getattr(values.dtype, "kind", "") == "m":
        return values.astype("int64").to_numpy()
    check_plain(values)
    texts = pd.Series(values.unique()).map(str)  # astype(str) would decode bytes
    format = ISO if values.dtype.kind == "M" else date_format(texts, dates) or ISO
    if format == UNDECIDED:
        raise CustomerError(DataCode.TIME_UNDECIDED(name))
    parsed = parse_dates(values, format)
    if parsed.isna().any():
        raise CustomerError(DataCode.TIME_NO_DATE(name, value=str(values[parsed.isna()].iloc[0])[:40]))
    return parsed.astype("int64").to_numpy()  # in the column's own unit: nanoseconds end in 2262


def check_plain(values: pd.Series) -> None:
    """Raise `CustomerError` for a column with a role that holds lists or the like."""
    if not is_comparable(values):
        raise CustomerError(DataCode.LISTS(str(values.name)))
