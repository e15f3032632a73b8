"""From a customer's frame to arrays: which columns are used and as what.

The kinds of columns are decided once per customer, from the rows of the search; everything that is learned from
values (medians, scales, categories) is learned inside a fold, see `tuning.preprocessing.encoding`.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from tuning.errors import CustomerError

NUMBER, DATE, TEXT = "number", "date", "text"
MISSING = "(missing)"
# Text of which nearly every value is another one names rows; it says nothing about rows to come.
NAMES_ROWS, NAMES_ROWS_FROM = 0.9, 20
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Column:
    """A feature: its name in the frame and its kind."""

    name: str
    kind: str


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


def read_columns(
    frame: pd.DataFrame, names: Sequence[str], search: np.ndarray, chosen: bool = False
) -> tuple[tuple[Column, ...], RawColumns, list[str]]:
    """The usable features among `names`, all rows of them as arrays, and what was left out and why.

    search: positions of the rows that may be looked at to decide. Left out are columns that are empty or constant
    there, hold lists or the like, and, unless the user chose them, text that names rows.

    Numbers, booleans and durations are numbers (in seconds); datetimes, and text of which every value is an ISO 8601
    date, are dates; all else is text.
    """
    columns: list[Column] = []
    parts = _Parts()
    left_out: list[str] = []
    for name in names:
        values = _Values(frame[name])
        kind = values.kind(search)
        reason = "" if kind in (NUMBER, DATE, TEXT) else kind
        if kind == TEXT:
            codes, texts = values.texts()
            reason = _unusable_text(codes[search], texts, chosen)
            if not reason:
                parts.add_text(codes, texts)
        elif not reason:
            found = values.numbers() if kind == NUMBER else values.date_parts()
            reason = "" if _varies(found[0][search]) else "empty or constant"
            if not reason:
                parts.numbers += found
        if reason:
            left_out.append(f"{name} ({reason})")
        else:
            columns.append(Column(name, kind))
    return tuple(columns), parts.raw(len(frame)), left_out


def all_columns(frame: pd.DataFrame) -> tuple[Column, ...]:
    """Every column of a frame, those without any use included."""
    kinds = {name: _Values(frame[name]).kind(None) for name in frame.columns}
    return tuple(Column(name, kind if kind in (NUMBER, DATE, TEXT) else TEXT) for name, kind in kinds.items())


def as_frame(frame: pd.DataFrame, columns: Sequence[Column]) -> RawColumns:
    """The frame's columns as they are; a missing one is a `CustomerError`."""
    _check_present(frame, columns)
    nothing = np.empty((len(frame), 0))
    return RawColumns(nothing, nothing, frame=frame[[column.name for column in columns]])


def _check_present(frame: pd.DataFrame, columns: Sequence[Column]) -> None:
    missing = [column.name for column in columns if column.name not in frame.columns]
    if missing:
        raise CustomerError(f"columns are missing: {', '.join(map(repr, missing))}; the model was fitted with them.")


def to_raw(frame: pd.DataFrame, columns: Sequence[Column]) -> RawColumns:
    """The frame's columns as arrays; a column that is missing or has changed its kind is a `CustomerError`."""
    _check_present(frame, columns)
    parts = _Parts()
    for column in columns:
        values = _Values(frame[column.name])
        if column.kind == NUMBER:
            parts.numbers += values.numbers()
        elif column.kind == DATE:
            parts.numbers += values.date_parts()
        else:
            values.check_text()
            parts.add_text(*values.texts())
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


class _Values:
    """One column's values, looked at as numbers, dates or text; its different values are found once."""

    def __init__(self, values: pd.Series) -> None:
        self.values = values
        self.name = values.name
        self.dtype = values.dtype

    @cached_property
    def _factorized(self) -> tuple[np.ndarray, pd.Index]:
        """(code of each row, -1 where missing; the different values)."""
        return pd.factorize(self.values)

    def kind(self, search: np.ndarray | None) -> str:
        """NUMBER, DATE, TEXT, or why the column cannot be used; only rows of the search are looked at."""
        if self.dtype.kind in "biufm":
            return NUMBER
        if self.dtype.kind == "M":
            return DATE
        if self.dtype.kind == "c":
            return "complex numbers"
        if isinstance(self.dtype, pd.CategoricalDtype):
            return TEXT
        if not isinstance(self.dtype, pd.StringDtype) and self.dtype != np.dtype(object):
            return NUMBER if pd.api.types.is_numeric_dtype(self.dtype) else TEXT
        try:
            codes, found = self._factorized
        except TypeError:
            return "holds lists or the like"
        seen = np.unique(codes if search is None else codes[search])
        seen = found[seen[seen >= 0]]
        if not len(seen):
            return "empty or constant"
        if isinstance(seen[0], str):
            return DATE if ISO_DATE.match(seen[0]) and _all_dates(seen) else TEXT
        if isinstance(seen[0], decimal.Decimal):
            return NUMBER
        return DATE if isinstance(seen[0], datetime.date) else TEXT

    def numbers(self) -> list[np.ndarray]:
        """One array of float64; not numbers is a `CustomerError`."""
        if isinstance(self.dtype, np.dtype) and self.dtype.kind in "biuf":
            return [self.values.to_numpy(dtype=np.float64)]
        if self.dtype.kind == "m":
            return [self.values.dt.total_seconds().to_numpy(dtype=np.float64)]
        try:
            return [pd.to_numeric(self.values).to_numpy(dtype=np.float64, na_value=np.nan)]
        except (ValueError, TypeError) as error:
            raise CustomerError(
                f"column {self.name!r} held numbers when the model was fitted, now it does not: {error}."
            ) from error

    def date_parts(self) -> list[np.ndarray]:
        """Days since 1970 with their fraction, month, weekday (Monday 0), hour; a value that is no date is missing."""
        if self.dtype.kind == "M":
            return _parts(pd.to_datetime(self.values, utc=True))
        codes, found = self._factorized
        parsed = pd.to_datetime(pd.Series(found), format="ISO8601", utc=True, errors="coerce")
        if len(found) and parsed.isna().all():
            raise CustomerError(
                f"column {self.name!r} held dates when the model was fitted, now it does not: {str(found[0])[:50]!r}."
            )
        return [np.append(part, np.nan)[codes] for part in _parts(parsed)]

    def texts(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """(position of each row's text, the texts sorted); missing values are a text of their own."""
        codes, found = self._factorized
        texts = [str(text) for text in found]
        if (codes < 0).any():
            texts.append(MISSING)  # code -1 is the last one
        ordered = sorted(set(texts))
        place = {text: position for position, text in enumerate(ordered)}
        table = np.array([place[text] for text in texts] or [0], dtype=np.int64)
        return table[codes], tuple(ordered)

    def check_text(self) -> None:
        """A column of text that comes back as numbers would match no known category, silently."""
        if self.dtype.kind in "iufc" and self.values.notna().any():
            raise CustomerError(
                f"column {self.name!r} held text when the model was fitted, now it holds numbers ({self.dtype}); "
                "convert it, for example with .astype(str)."
            )


def _all_dates(values: Iterable[object]) -> bool:
    try:
        pd.to_datetime(pd.Series(values), format="ISO8601", utc=True)
    except (ValueError, TypeError):
        return False
    return True


def _varies(values: np.ndarray) -> bool:
    """Whether a column holds at least two different numbers."""
    finite = values[np.isfinite(values)]
    return bool(len(finite)) and bool((finite != finite[0]).any())


def _unusable_text(codes: np.ndarray, texts: tuple[str, ...], chosen: bool) -> str:
    counts = np.bincount(codes, minlength=len(texts))
    present = [number for number, text in zip(counts, texts, strict=True) if number and text != MISSING]
    if len(present) < 2:
        return "empty or constant"
    if not chosen and len(codes) > NAMES_ROWS_FROM and len(present) > NAMES_ROWS * sum(present):
        return "nearly every value is unique; list it in `features` to use it anyway"
    return ""


def _parts(moments: pd.Series) -> list[np.ndarray]:
    days = (moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    fields: list[pd.Series] = [days, moments.dt.month, moments.dt.day_of_week, moments.dt.hour]
    return [field.to_numpy(dtype=np.float64, na_value=np.nan) for field in fields]
