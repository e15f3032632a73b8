"""What a column's values are: numbers, dates, durations or text; decided from all values that may be looked at."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from tuning.errors import CustomerError
from tuning.notes import DataCode, Note
from tuning.preprocessing.dates import ISO, UNDECIDED, date_format, parse_dates
from tuning.preprocessing.notations import IS_NUMBER, MISSING, nearly_numbers, numbers_among
from tuning.preprocessing.storable import storable

NUMBER, DATE, DURATION, TEXT = "number", "date", "duration", "text"
KINDS = (NUMBER, DATE, DURATION, TEXT)
PRESENCE = "presence"  # of a column of one value and gaps: whether a row has the value
BY_TYPE: Mapping[str, str | DataCode] = {
    "m": DURATION,
    "M": DATE,
    "c": DataCode.COMPLEX,
    **dict.fromkeys("biuf", NUMBER),
}  # by kind of numpy's types


@dataclass(frozen=True)
class Column:
    """A feature: its name in the frame and its kind.

    format: of dates that came as text, in the notation of `strptime`; ISO 8601 by default.
    """

    name: str
    kind: str
    format: str = ISO


class Values:
    """One column's values, looked at as numbers, dates or text; its different values are found once."""

    def __init__(self, values: pd.Series, dates: str | None = None) -> None:
        plain = isinstance(values.dtype, np.dtype) and values.dtype != object
        self.values = values if plain else storable(values.infer_objects())
        self.name = values.name
        self.dtype = self.values.dtype
        self.format = ISO
        self._dates = dates

    @cached_property
    def _factorized(self) -> tuple[np.ndarray, pd.Index]:
        """(code of each row, -1 where missing; the different values)."""
        return pd.factorize(self.values)

    def kind(self, search: np.ndarray | None) -> str | DataCode:
        """Return one of KINDS, or why the column cannot be used; only rows of the search are looked at."""
        if (typed := self._typed()) is not None:
            return typed
        try:
            codes, found = self._factorized
        except TypeError:
            return DataCode.OF_LISTS
        codes = codes if search is None else codes[search]
        present, counts = np.unique(codes[codes >= 0], return_counts=True)
        seen = found[present]
        if len(seen) < 2:
            return DataCode.EMPTY_OR_CONSTANT
        if any(isinstance(value, bytes) for value in seen):
            return DataCode.OF_BYTES
        if isinstance(seen[0], str):
            return self._kind_of_text(pd.Series(seen).astype(str), counts)
        if isinstance(seen[0], decimal.Decimal) or all(isinstance(value, bool) for value in seen):
            return NUMBER
        return DATE if isinstance(seen[0], datetime.date) else TEXT

    @property
    def holds_text(self) -> bool:
        """Whether its first value is text."""
        if self._typed() is not None:
            return False
        there = self.values.dropna()
        return bool(len(there)) and isinstance(there.iloc[0], str)

    def _typed(self) -> str | DataCode | None:
        """Return what the column's type says; None where only the values can."""
        if isinstance(self.dtype, pd.CategoricalDtype):  # also of numbers
            return TEXT
        if (found := BY_TYPE.get(getattr(self.dtype, "kind", ""))) is not None:
            return found
        if not isinstance(self.dtype, pd.StringDtype) and self.dtype != np.dtype(object):
            return NUMBER if pd.api.types.is_numeric_dtype(self.dtype) else TEXT
        return None

    def _kind_of_text(self, seen: pd.Series, counts: np.ndarray) -> str | DataCode:
        """Return NUMBER, DATE or TEXT, or why dates cannot be read. seen: the different texts, with their `counts`."""
        if (format := date_format(seen, self._dates)) is not None:
            self.format = format
            return DataCode.UNDECIDED if format == UNDECIDED else DATE
        if seen.str.fullmatch(IS_NUMBER).all():
            return TEXT  # numbers that somebody has made text on purpose
        return NUMBER if nearly_numbers(seen, counts) else TEXT

    def check(self, column: Column) -> None:
        """Raise `CustomerError` where a fitted column comes back as another kind; an unknown kind is no other kind."""
        if column.kind == PRESENCE:
            return
        typed = self._typed()
        if typed is None:
            found = self._factorized[1]
            numbers = (
                len(found) and isinstance(found[0], int | float | decimal.Decimal) and not isinstance(found[0], bool)
            )
            typed = NUMBER if numbers else None
        if typed in (None, column.kind) or isinstance(self.dtype, pd.CategoricalDtype) or not self.values.notna().any():
            return
        now = typed if isinstance(typed, str) else "complex number"
        if column.kind == TEXT:
            raise CustomerError(DataCode.COLUMN_NO_TEXT(str(self.name), now=now, dtype=str(self.dtype)))
        raise self._changed(column.kind, now)

    def arrays(self, column: Column) -> list[np.ndarray]:
        """Return the column as float64: one array of numbers (seconds, for a duration), or the four parts of dates."""
        if column.kind == DATE:
            return self._date_parts(column.format)
        if column.kind == PRESENCE:
            return [self.presence()]
        return [self._seconds() if column.kind == DURATION else self._numbers()]

    def presence(self) -> np.ndarray:
        """Return (n,) 1 where a row has a value, 0 where it is missing; an infinite number counts as missing."""
        if self.dtype.kind == "f":
            return np.isfinite(self._numbers()).astype(np.float64)
        return self.values.notna().to_numpy(dtype=np.float64)

    def no_such_values(self, found: np.ndarray, kind: str) -> list[Note]:
        """Return a note where single values of a column are not of its kind, and so are missing."""
        if self._typed() is not None or not (wrong := self.values.notna().to_numpy() & np.isnan(found)).any():
            return []
        example = str(self.values[wrong].iloc[0])[:40]
        return [DataCode.TAKEN_AS_MISSING(str(self.name), count=int(wrong.sum()), kind=kind, example=example)]

    def _numbers(self) -> np.ndarray:
        if isinstance(self.dtype, np.dtype) and self.dtype.kind in "biuf":
            return self.values.to_numpy(dtype=np.float64)
        numbers, wrong = numbers_among(self.values)
        if self.holds_text and not nearly_numbers(texts := self.values.dropna().astype(str)):
            odd = texts[~texts.str.fullmatch(IS_NUMBER)]
            raise self._changed(NUMBER, TEXT, (odd if len(odd) else texts).iloc[0])
        if wrong.any() and not self.holds_text:
            raise self._changed(NUMBER, "other value", self.values[wrong].iloc[0])
        return numbers.to_numpy()

    def _seconds(self) -> np.ndarray:
        values = self.values
        if self.dtype.kind != "m":
            values = pd.to_timedelta(values.astype(object).where(values.notna(), None), errors="coerce")
            if values.isna().all() and self.values.notna().any():
                raise self._changed(DURATION, TEXT, self.values.dropna().iloc[0])
        return values.dt.total_seconds().to_numpy(dtype=np.float64)

    def _date_parts(self, format: str) -> list[np.ndarray]:
        """Return days since 1970 with fraction, month, weekday (Monday 0) and hour; other values are missing."""
        if self.dtype.kind == "M":
            return _parts(pd.to_datetime(self.values, utc=True))
        codes, found = self._factorized
        texts = pd.Series(found)
        parsed = parse_dates(texts, format if len(found) and isinstance(found[0], str) else ISO)
        if format != ISO and parsed.isna().all():
            parsed = parse_dates(texts, ISO)
        if len(found) and parsed.isna().all():
            raise self._changed(DATE, TEXT if isinstance(found[0], str) else "other value", found[0])
        return [np.append(part, np.nan)[codes] for part in _parts(parsed)]

    def texts(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return (position of each row's text, the texts sorted); missing values are a text of their own."""
        codes, found = self._factorized
        texts = [str(text) for text in found]
        if (codes < 0).any():
            texts.append(MISSING)  # code -1 is the last one
        ordered = sorted(set(texts))
        place = {text: position for position, text in enumerate(ordered)}
        table = np.array([place[text] for text in texts] or [0], dtype=np.int64)
        return table[codes], tuple(ordered)

    def _changed(self, kind: str, now: str, example: object = None) -> CustomerError:
        shown = "" if example is None else repr(str(example)[:40])
        return CustomerError(DataCode.COLUMN_CHANGED(str(self.name), before=kind, now=now, example=shown))


def _parts(moments: pd.Series) -> list[np.ndarray]:
    moments = moments.dt.as_unit("us")  # whatever the source's unit, so that the same moment is the same number
    since = moments - pd.Timestamp(0, tz="UTC").as_unit("us")  # in nanoseconds, 2262 would be the last year
    days = since.dt.total_seconds() / 86_400
    fields: list[pd.Series] = [days, moments.dt.month, moments.dt.day_of_week, moments.dt.hour]
    return [field.to_numpy(dtype=np.float64, na_value=np.nan) for field in fields]
