"""Columns with a role of their own: target, weights, groups, moments, predictions. Each is checked per customer."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tuning.basics.wording import amount, name_list, value_text
from tuning.errors import CustomerError
from tuning.preprocessing.classes import Label, find_label, guess_positive, read_classes
from tuning.preprocessing.dates import ISO, NEARLY_ALL, UNDECIDED, date_format, parse_dates
from tuning.preprocessing.notations import seeming
from tuning.preprocessing.task import BINARY, REGRESSION, Task, numbers_among

LARGEST = 1e150  # of a target
FAR, FEW = 1000.0, 0.02  # how many interquartile ranges from the median a target is odd, if at most so many rows are
MAX_CLASSES = 50  # more are believed only where a class has two rows or more on average


def read_target(values: pd.Series, task: str) -> tuple[pd.Series, str]:
    """The target with cells that are no numbers made missing where numbers are needed, and a note on them.

    Those are numbers to predict, and the two numbers of a binary task. A `CustomerError` says that too many of the
    values are none.
    """
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values, ""
    if task != REGRESSION and not (task == BINARY and _distinct(values) > 2):
        return values, ""
    numbers, wrong = numbers_among(values)
    if not wrong.any():
        return (numbers, "") if task == REGRESSION else (values, "")
    count, total = int(wrong.sum()), int(values.notna().sum())
    first = f"the first is {str(values[wrong].iloc[0])[:40]!r} in row {int(wrong.argmax()) + 1}"
    few = total - count >= NEARLY_ALL * total
    if task == BINARY and not (few and _distinct(numbers) == 2):
        return values, ""
    if not few:
        raise CustomerError(
            f"the target {values.name!r} holds text, regression needs numbers: {count} of its {amount(total, 'value')} "
            f"are none, {first}; up to {1 - NEARLY_ALL:.0%} would be left out as missing."
            + (f" They seem to be {said}." if (said := seeming(values[wrong].map(str).unique().tolist())) else "")
        )
    return numbers, f"{count} of {amount(total, 'row')} are left out, whose target is no number: {first}"


def far_target_note(y: np.ndarray) -> str:
    """What is said of single targets (n,) that are far from all others: whoever mistypes one spoils the model."""
    most = np.abs(y).max()
    if most <= FAR * np.median(np.abs(y)):  # the usual case, in microseconds
        return ""
    low, middle, high = np.percentile(y, [25, 50, 75])
    far = np.flatnonzero(np.abs(y - middle) > FAR * (high - low))
    if high == low or not 0 < len(far) <= max(1.0, FEW * len(y)):
        return ""
    at = float(y[far[np.argmax(np.abs(y[far] - middle))]])
    usual = f"half of the others are {value_text(float(low))} to {value_text(float(high))}"
    return f"a target of {value_text(at)} is far from all others ({usual}): correct it, or cap it with prepare"


def _distinct(values: pd.Series) -> int:
    try:
        return int(values.nunique())
    except TypeError:  # lists or the like
        return 0


def encode_target(
    values: pd.Series, task: str, positive: Label | None = None, *, required: bool = False
) -> tuple[np.ndarray, Task]:
    """Numbers for regression, class codes otherwise; an unusable target is a `CustomerError`.

    positive: the positive class of a binary task. A customer without it gets one by `guess_positive`, or, when it is
    required, an error.
    """
    name = values.name
    if task == REGRESSION:
        y = values.to_numpy(dtype=np.float64)
        if not np.isfinite(y).all():
            raise CustomerError(f"the target {name!r} holds {int((~np.isfinite(y)).sum())} infinite values.")
        if (most := float(np.abs(y).max())) > LARGEST:
            raise CustomerError(f"the target {name!r} holds {most:g}: beyond {LARGEST:g} a square is infinite.")
        if (y == y[0]).all():
            raise CustomerError(f"the target {name!r} is constant ({y[0]:g}): there is nothing to predict.")
        return y, Task(task)
    if pd.api.types.is_float_dtype(values.dtype) and np.isinf(values.to_numpy(dtype=np.float64)).any():
        raise CustomerError(f"the target {name!r} holds infinite values.")
    codes, classes = read_classes(values)
    if len(classes) < 2:
        raise CustomerError(f"the target {name!r} holds a single class ({classes[0]!r}): at least two are needed.")
    if task == BINARY and len(classes) > 2:
        raise CustomerError(
            f"the target {name!r} holds {amount(len(classes), 'class')} ({name_list(classes, 4)}), the task is binary."
        )
    if len(classes) > MAX_CLASSES and 2 * len(classes) > len(values):
        raise CustomerError(
            f"the target {name!r} holds {amount(len(classes), 'class')} in {amount(len(values), 'row')}: is it a "
            "number to predict (task: regression), or an id?"
        )
    if task == BINARY and _positive(values, classes, positive, required) == classes[0]:
        return 1 - codes, Task(task, classes[::-1])
    return codes, Task(task, classes)


def _positive(values: pd.Series, classes: tuple[Label, ...], wanted: Label | None, required: bool) -> Label:
    found = None if wanted is None else find_label(wanted, classes)
    if found is not None:
        return found
    if required:
        raise CustomerError(
            f"the positive class {wanted!r} is not among the classes of the target {values.name!r}: "
            f"{name_list(classes)}."
        )
    guess = guess_positive([values])
    return classes[1] if guess is None else guess[0]


def read_weights(values: pd.Series) -> np.ndarray:
    """(n,) sample weights; a missing, negative or infinite one is a `CustomerError`, so are none above zero."""
    try:
        weights = pd.to_numeric(values).to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError) as error:
        raise CustomerError(f"the weights {values.name!r} are not numbers: {error}.") from error
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        raise CustomerError(
            f"the weights {values.name!r} are missing, negative or infinite in {amount(int(wrong.sum()), 'row')} "
            f"(first in row {int(wrong.argmax()) + 1})."
        )
    if not (weights > 0).any():
        raise CustomerError(f"the weights {values.name!r} are all 0.")
    return weights


def check_predictions(values: pd.Series) -> None:
    """`CustomerError` where a row has no prediction of the user's own."""
    check_plain(values)
    missing = values.isna().to_numpy()
    if missing.any():
        raise CustomerError(
            f"the baseline's column {values.name!r} is empty in {int(missing.sum())} of {amount(len(values), 'row')} "
            f"with a target (first in row {int(missing.argmax()) + 1}): each of these rows needs a prediction."
        )


def read_groups(values: pd.Series) -> np.ndarray:
    """(n,) a code per group; rows without one are a group together."""
    check_plain(values)
    codes, groups = pd.factorize(values)
    codes[codes < 0] = len(groups)
    return codes


def read_moments(values: pd.Series, dates: str | None = None) -> np.ndarray:
    """(n,) sortable numbers of a column of numbers, dates or text; a missing one is a `CustomerError`.

    dates: how dates in text are written, as the definition says it; None to guess from all of them.
    """
    name = values.name
    missing = int(values.isna().sum())
    if missing:
        raise CustomerError(f"the time column {name!r} is empty in {amount(missing, 'row')}; every row needs a moment.")
    if pd.api.types.is_numeric_dtype(values.dtype):
        moments = values.to_numpy(dtype=np.float64)
        if not np.isfinite(moments).all():
            raise CustomerError(f"the time column {name!r} holds infinite values.")
        return moments
    if getattr(values.dtype, "kind", "") == "m":
        return values.astype("int64").to_numpy()
    check_plain(values)
    texts = pd.Series(values.unique()).map(str)  # astype(str) would decode bytes
    format = ISO if values.dtype.kind == "M" else date_format(texts, dates) or ISO
    if format == UNDECIDED:
        raise CustomerError(f"the time column {name!r} holds {UNDECIDED}.")
    parsed = parse_dates(values, format)
    if parsed.isna().any():
        wrong = values[parsed.isna()].iloc[0]
        raise CustomerError(
            f"the time column {name!r} holds {str(wrong)[:40]!r}, which is no date such as 2024-03-31; set `dates` to "
            "how its dates are written."
        )
    return parsed.astype("int64").to_numpy()  # in the column's own unit: nanoseconds end in 2262


def check_plain(values: pd.Series) -> None:
    """`CustomerError` for a column with a role that holds lists or the like."""
    if isinstance(values.dtype, np.dtype) and values.dtype != object:
        return
    try:
        pd.factorize(values)
    except TypeError:
        raise CustomerError(
            f"the column {values.name!r} holds lists or the like; numbers or text are needed."
        ) from None
