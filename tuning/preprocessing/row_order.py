"""Whether rows have an order that a random split would hide: by a date, or because each target depends on the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import pandas as pd

from tuning.errors import CustomerError
from tuning.notes import DataCode, Note
from tuning.preprocessing.columns import Features, read_columns
from tuning.preprocessing.kinds import DATE, NUMBER
from tuning.preprocessing.roles import encode_target, read_moments, read_target

LEAST_ROWS, MOST_ROWS, MOST_COLUMNS = 30, 2000, 50  # looked at
CLEAR = 0.3  # correlation that is no accident of a few rows; of many rows a smaller one would be
CLEAR_ERRORS = 4  # standard errors that it is from 0 besides


@dataclass(frozen=True)
class RowOrder:
    """The order of a customer's rows.

    Attributes:
        column: that says it, a date or a number that always grows; empty where the rows alone do.
        is_date: whether it is a date.
        ordered: whether the rows are sorted by this date.
        correlation: of what a plain model gets wrong in one row with the row before (lag-1 autocorrelation).
        depends: whether that is clearly above 0.
    """

    column: str
    is_date: bool
    ordered: bool
    correlation: float
    depends: bool


def row_orders(
    frames: Iterable[pd.DataFrame], target: str, task: str, dates: str | None = None
) -> tuple[list[RowOrder], int]:
    """Return the orders of those customers that have the most frequent one, and how many were looked at.

    None where fewer than half of them have any.
    """
    seen = [row_order(frame, target, task, dates) for frame in frames if target in frame]
    found = [each for each in seen if each is not None]
    if not found or 2 * len(found) < len(seen):
        return [], len(seen)
    column = Counter(each.column for each in found).most_common(1)[0][0]
    return [each for each in found if each.column == column], len(seen)


def order_note(orders: Sequence[RowOrder], looked_at: int) -> Note:
    """Return a note on what customers with the same order have in common. looked_at: how many customers were."""
    column, half = orders[0].column, len(orders) / 2
    is_sorted = sum(each.ordered for each in orders) >= half
    by = [column] if column and not is_sorted else []
    why = DataCode.ROWS_FOLLOW(by=by, correlation=median(each.correlation for each in orders))
    if is_sorted:
        depends = sum(each.depends for each in orders) >= half
        why = DataCode.ROWS_SORTED(column, follow=why if depends else None)
    return why if looked_at == 1 else DataCode.OF_CUSTOMERS(found=len(orders), looked_at=looked_at, what=why)


def date_of(orders: Sequence[RowOrder]) -> str | None:
    """Return the date by which rows are to be split; None where they have no order, or none by a date."""
    return orders[0].column if orders and orders[0].is_date else None


def row_order(frame: pd.DataFrame, target: str, task: str, dates: str | None = None) -> RowOrder | None:
    """Return the order of a customer's first rows; None where they are too few, or none is seen.

    dates: how dates in text are written, as the definition says it; None to guess.
    """
    try:
        values = read_target(frame[target], task)[0]
        known = values.notna().to_numpy()
        frame, values = frame[known][:MOST_ROWS], values[known][:MOST_ROWS]
        if len(frame) < LEAST_ROWS:
            return None
        y, found = encode_target(values, task)
        names = [name for name in frame.columns if name != target][:MOST_COLUMNS]
        features = read_columns(frame, names, np.arange(len(frame)), dates=dates)
    except CustomerError:
        return None
    y = (y == np.bincount(y).argmax()).astype(float) if found.classification else y
    if _rises(y) or _rises(-y):
        return None  # sorted by the target itself, which is no time
    growing = [name for name in _of_kind(features, NUMBER) if _always(frame[name])]
    by, moments = _time_column(frame, _of_kind(features, DATE), dates)
    ordered = moments is not None and (_rises(moments) or _rises(-moments))
    if moments is None and growing:
        by = growing[0]
    rows = np.arange(len(y)) if moments is None else np.argsort(moments, kind="stable")
    plain = [name for name in _names(features) if name not in (*_of_kind(features, DATE), *growing)]
    if plain != _names(features):
        features = read_columns(frame, plain, np.arange(len(frame)), dates=dates)
    correlation = _lag_one(_errors(features, y)[rows])
    depends = bool(correlation >= max(CLEAR, CLEAR_ERRORS / np.sqrt(len(y))))
    return RowOrder(by, moments is not None, ordered, correlation, depends) if ordered or depends else None


def _names(features: Features) -> list[str]:
    return [column.name for column in features.columns]


def _of_kind(features: Features, kind: str) -> list[str]:
    return [column.name for column in features.columns if column.kind == kind]


def _time_column(frame: pd.DataFrame, names: Sequence[str], dates: str | None) -> tuple[str, np.ndarray | None]:
    """Return a date that every row has, and its moments: one that the rows are sorted by, else the first."""
    found: list[tuple[str, np.ndarray]] = []
    for name in names:
        try:
            moments = read_moments(frame[name], dates).astype(float)
        except CustomerError:
            continue
        if _rises(moments) or _rises(-moments):
            return name, moments
        found.append((name, moments))
    return found[0] if found else ("", None)


def _rises(values: np.ndarray) -> bool:
    return bool((np.diff(values) >= 0).all())


def _always(column: pd.Series) -> bool:
    """Return whether a number rises or falls from each row to the next, as a row number or a year does."""
    try:
        steps = np.diff(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):  # text of numbers
        return False
    return bool((steps > 0).all() or (steps < 0).all())


def _errors(features: Features, y: np.ndarray) -> np.ndarray:
    """Return the errors of a tree of these columns on rows that it was not fitted to, in random folds."""
    from sklearn.model_selection import KFold
    from sklearn.tree import DecisionTreeRegressor

    spread = np.ptp(y)
    if not 0 < spread < np.inf:
        return np.zeros(len(y))
    y = (y - y.min()) / spread
    raw = features.raw
    columns = np.clip(np.nan_to_num(np.hstack([raw.numbers, raw.codes])), -1e30, 1e30)
    if not columns.shape[1]:
        return np.asarray(y - y.mean())
    tree = DecisionTreeRegressor(min_samples_leaf=max(3, len(y) // 100), random_state=0)
    errors = np.empty(len(y))
    for fitted, left_out in KFold(3, shuffle=True, random_state=0).split(y):
        errors[left_out] = y[left_out] - tree.fit(columns[fitted], y[fitted]).predict(columns[left_out])
    return errors


def _lag_one(errors: np.ndarray) -> float:
    centred = errors - errors.mean()
    total = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / total if total > 0 else 0.0
