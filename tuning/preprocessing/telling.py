"""Whether one column alone says the target of every row, as one that was made of it does."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tuning.preprocessing.task import REGRESSION

REPEATED = 5  # rows of each value or class, on average and at least


def tells(column: pd.Series, target: pd.Series, task: str) -> bool:
    """Return whether a column tells the target: a value for each class, a range for each, or a straight line."""
    try:
        codes, values = pd.factorize(column, use_na_sentinel=False)
        classes, labels = pd.factorize(target)
    except TypeError:  # lists or the like
        return False
    if len(values) < 2 or len(labels) < 2:
        return False
    pairs = len(pd.DataFrame({"value": codes, "class": classes}).drop_duplicates())
    if pairs == len(values) and len(values) * REPEATED <= len(codes):
        return True
    number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if not number:
        return False
    x = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if task == REGRESSION:
        return _on_a_line(x, target.to_numpy(dtype=np.float64))
    order = np.lexsort((classes, x))  # missing values are last
    ordered = classes[order]
    changes = ordered[1:] != ordered[:-1]
    apart = pairs == len(values) and changes.sum() == len(labels) - 1
    return bool(apart) and int(np.bincount(classes).min()) >= REPEATED


def _on_a_line(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether y is a + b x, as far as numbers in files go."""
    if not all(np.isfinite(values).all() and 0 < np.ptp(values) < np.inf for values in (x, y)):
        return False
    x, y = ((values - values.min()) / np.ptp(values) for values in (x, y))  # squares of very small numbers are 0
    b, a = np.polyfit(x, y, 1)
    return bool(np.abs(y - a - b * x).max() <= 1e-6)
