"""Columns with a role of their own: target, weights, groups, moments. Each is checked once per customer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from tuning.errors import CustomerError
from tuning.preprocessing.dates import ISO, UNDECIDED, date_format, parse_dates
from tuning.preprocessing.task import BINARY, Label, Task

MAX_CLASSES = 50  # more are believed only where a class has two rows or more on average

ClassWeights: TypeAlias = Mapping[Label, float] | Literal["balanced"]  # a weight per class label


def encode_target(values: pd.Series, task: str) -> tuple[np.ndarray, Task]:
    """Numbers for regression, class codes otherwise; an unusable target is a `CustomerError`."""
    name = values.name
    if task == "regression":
        try:
            y = pd.to_numeric(values).to_numpy(dtype=np.float64)
        except (ValueError, TypeError) as error:
            raise CustomerError(f"the target {name!r} holds text, regression needs numbers: {error}.") from error
        if not np.isfinite(y).all():
            raise CustomerError(f"the target {name!r} holds {int((~np.isfinite(y)).sum())} infinite values.")
        if (y == y[0]).all():
            raise CustomerError(f"the target {name!r} is constant ({y[0]:g}): there is nothing to predict.")
        return y, Task(task)
    if pd.api.types.is_float_dtype(values.dtype) and np.isinf(values.to_numpy(dtype=np.float64)).any():
        raise CustomerError(f"the target {name!r} holds infinite values.")
    codes, labels = pd.factorize(values, sort=True)
    classes = tuple(map(_label, labels))
    if len(classes) < 2:
        raise CustomerError(f"the target {name!r} holds a single class ({classes[0]!r}): at least two are needed.")
    if task == BINARY and len(classes) > 2:
        raise CustomerError(f"the target {name!r} holds {len(classes)} classes, the task is binary.")
    if len(classes) > MAX_CLASSES and 2 * len(classes) > len(values):
        raise CustomerError(
            f"the target {name!r} holds {len(classes)} classes in {len(values)} rows: is it a number to predict "
            "(task: regression), or an id?"
        )
    return codes.astype(np.int64), Task(task, classes)


def _label(value: object) -> Label:
    """A class label as a plain value that a model file can hold; dates and the like as text."""
    plain = value.item() if hasattr(value, "item") else value
    return plain if isinstance(plain, str | int | float | bool) else str(value)


def read_weights(values: pd.Series) -> np.ndarray:
    """(n,) sample weights; a missing, negative or infinite one is a `CustomerError`, so are none above zero."""
    try:
        weights = pd.to_numeric(values).to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError) as error:
        raise CustomerError(f"the weights {values.name!r} are not numbers: {error}.") from error
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        raise CustomerError(
            f"the weights {values.name!r} hold {int(wrong.sum())} values that are missing, negative or infinite "
            f"(first in row {int(wrong.argmax()) + 1})."
        )
    if not (weights > 0).any():
        raise CustomerError(f"the weights {values.name!r} are all 0.")
    return weights


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
        raise CustomerError(f"the time column {name!r} is empty in {missing} rows; every row needs a moment.")
    if pd.api.types.is_numeric_dtype(values.dtype):
        moments = values.to_numpy(dtype=np.float64)
        if not np.isfinite(moments).all():
            raise CustomerError(f"the time column {name!r} holds infinite values.")
        return moments
    if getattr(values.dtype, "kind", "") == "m":
        return values.astype("timedelta64[ns]").astype("int64").to_numpy()
    check_plain(values)
    texts = pd.Series(values.unique()).astype(str)
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
    return parsed.astype("datetime64[ns, UTC]").astype("int64").to_numpy()


def check_plain(values: pd.Series) -> None:
    """`CustomerError` for a column with a role that holds lists or the like."""
    try:
        pd.factorize(values)
    except TypeError:
        raise CustomerError(
            f"the column {values.name!r} holds lists or the like; numbers or text are needed."
        ) from None


def class_weights(given: ClassWeights, y: np.ndarray, task: Task) -> np.ndarray:
    """(classes,) a weight per class: as given by label (1 for a class not named), or n / (classes * rows of it)."""
    if given == "balanced":
        counts = np.bincount(y, minlength=len(task.classes))
        return np.where(counts > 0, len(y) / (np.count_nonzero(counts) * np.maximum(counts, 1)), 1.0)
    named = {str(label): float(weight) for label, weight in given.items()}
    return np.array([named.get(str(label), 1.0) for label in task.classes])
