"""From a customer's frame to arrays: which columns are used and as what.

The kinds of columns are decided once per customer, from the rows of the search; everything that is learned from
values (medians, scales, categories) is learned inside a fold, see `tuning.preprocessing.encoding`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tuning.errors import CustomerError
from tuning.notes import DataCode, Note
from tuning.preprocessing.kinds import NUMBER, PRESENCE, TEXT, Column, Values
from tuning.preprocessing.notations import MISSING, seeming

ANYTHING = "anything"  # the kind of a column of which no value tells; only own models that get columns as they are
# Text of which nearly every value is another one names rows; it says nothing about rows to come.
NAMES_ROWS, NAMES_ROWS_FROM = 0.9, 20


@dataclass(frozen=True)
class RawColumns:
    """Rows before encoding.

    numbers: (n, p) float64 with NaN. codes: (n, q) positions in `categories`, one tuple of names per text column,
    sorted. frame: all feature columns as they came, for own models that do their own preprocessing.
    """

    numbers: np.ndarray
    codes: np.ndarray
    categories: tuple[tuple[str, ...], ...] = ()
    frame: pd.DataFrame | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def rows(self, index: np.ndarray) -> RawColumns:
        frame = None if self.frame is None else self.frame.iloc[index]
        return RawColumns(self.numbers[index], self.codes[index], self.categories, frame)


@dataclass(frozen=True)
class Features:
    """The usable ones of a frame's columns.

    columns: what they are. raw: all rows of them as arrays. left_out: the other ones, each with the reason. notes:
    what else was found. as_they_came: whether all columns were float64, so that `raw` has them as they
    were.
    """

    columns: tuple[Column, ...]
    raw: RawColumns
    left_out: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()
    as_they_came: bool = False


def read_columns(
    frame: pd.DataFrame, names: Sequence[str], search: np.ndarray, chosen: bool = False, dates: str | None = None
) -> Features:
    """Return the usable features among `names`.

    search: positions of the rows that may be looked at to decide. dates: how dates in text are written, as the
    definition says it. Left out are columns that are empty or constant there, hold lists or the like, and, unless the
    user chose them, text that names rows. Of a column of one value and gaps it counts whether the value is there.

    Numbers and booleans are numbers, durations are numbers of seconds; datetimes, and text of which nearly every value
    is a date, are dates; text of which nearly every value is a number is numbers. All else is text.
    """
    columns: list[Column] = []
    parts = _Parts()
    left_out: list[Note] = []
    notes: list[Note] = []
    as_they_came = True
    for name in names:
        values = Values(frame[name], dates)
        kind = values.kind(search)
        reason = kind if isinstance(kind, DataCode) else None
        column = Column(name, str(kind), values.format)
        if kind == TEXT:
            codes, texts = values.texts()
            reason = _unusable_text(codes[search], texts, chosen)
            if not reason:
                parts.add_text(codes, texts)
                notes += [DataCode.TAKEN_AS_TEXT(name, seeming=said) for said in [seeming(texts)] if said]
        elif not reason:
            found = values.arrays(column)
            reason = None if _varies(found[0][search]) else DataCode.EMPTY_OR_CONSTANT
            if not reason:
                parts.numbers += found
                notes += values.no_such_values(found[0], column.kind)
        if reason is DataCode.EMPTY_OR_CONSTANT and _varies((there := values.presence())[search]):
            column, reason = Column(name, PRESENCE), None
            parts.numbers.append(there)
        if reason:
            left_out.append(reason(name, seeming=seeming(texts)) if reason is DataCode.SEEMING else reason(name))
        else:
            columns.append(column)
            as_they_came = as_they_came and values.dtype == np.float64 and column.kind != PRESENCE
    return Features(tuple(columns), parts.raw(len(frame)), tuple(left_out), tuple(notes), as_they_came)


def all_columns(frame: pd.DataFrame) -> tuple[Column, ...]:
    """Return every column as it is: text of numbers or dates is text, and an empty column may hold anything."""
    read = {name: Values(frame[name]) for name in frame.columns}
    kinds = {name: TEXT if values.holds_text else values.kind(None) for name, values in read.items()}
    return tuple(
        Column(name, kind if isinstance(kind, str) and frame[name].notna().any() else ANYTHING)
        for name, kind in kinds.items()
    )


def as_frame(frame: pd.DataFrame, columns: Sequence[Column]) -> RawColumns:
    """Return the frame's columns as they are, and text as numbers where these were fitted.

    A column that is missing or has changed its kind is a `CustomerError`.
    """
    _check_present(frame, columns)
    nothing = np.empty((len(frame), 0))
    frame = frame[[column.name for column in columns]]
    for column in (one for one in columns if one.kind != ANYTHING):
        values = Values(frame[column.name])
        values.check(column)
        if column.kind == NUMBER and values.holds_text:
            frame = pd.DataFrame({**frame, column.name: values.arrays(column)[0]}, index=frame.index)
    return RawColumns(nothing, nothing, frame=frame)


def _check_present(frame: pd.DataFrame, columns: Sequence[Column]) -> None:
    missing = [column.name for column in columns if column.name not in frame.columns]
    if missing:
        raise CustomerError(DataCode.COLUMNS_ABSENT(columns=missing))


def to_raw(frame: pd.DataFrame, columns: Sequence[Column]) -> RawColumns:
    """Return the frame's columns as arrays; `CustomerError` for one that is missing or has changed its kind."""
    _check_present(frame, columns)
    parts = _Parts()
    for column in columns:
        values = Values(frame[column.name])
        values.check(column)
        if column.kind == TEXT:
            parts.add_text(*values.texts())
        else:
            parts.numbers += values.arrays(column)
    return parts.raw(len(frame))


class _Parts:
    """Columns on their way into a `RawColumns`."""

    def __init__(self) -> None:
        self.numbers: list[np.ndarray] = []
        self._codes: list[np.ndarray] = []
        self._categories: list[tuple[str, ...]] = []

    def add_text(self, codes: np.ndarray, texts: tuple[str, ...]) -> None:
        self._codes.append(codes)
        self._categories.append(texts)

    def raw(self, rows: int) -> RawColumns:
        numbers = np.column_stack(self.numbers) if self.numbers else np.empty((rows, 0))
        numbers[~np.isfinite(numbers)] = np.nan
        codes = np.column_stack(self._codes) if self._codes else np.empty((rows, 0), dtype=np.int64)
        return RawColumns(numbers, codes, tuple(self._categories))


def _varies(values: np.ndarray) -> bool:
    """Return whether a column holds at least two different numbers."""
    finite = values[np.isfinite(values)]
    return bool(len(finite)) and bool((finite != finite[0]).any())


def _unusable_text(codes: np.ndarray, texts: tuple[str, ...], chosen: bool) -> DataCode | None:
    """Return why a column of text is of no use, if so."""
    counts = np.bincount(codes, minlength=len(texts))
    present = [number for number, text in zip(counts, texts, strict=True) if number and text != MISSING]
    if len(present) < 2:
        return DataCode.EMPTY_OR_CONSTANT
    if not chosen and len(codes) > NAMES_ROWS_FROM and len(present) > NAMES_ROWS * sum(present):
        return DataCode.SEEMING if seeming(texts) else DataCode.NAMES_ROWS
    return None
