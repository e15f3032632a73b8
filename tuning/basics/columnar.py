"""Many values of one dataclass, held as columns: a million of them take megabytes, and each is made when asked for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, overload

import numpy as np
import pyarrow as pa

T = TypeVar("T")
#: What a column holds, which the dataclass says of its field.
FieldValue: TypeAlias = Any
AT_ONCE = 4096  # values made together while somebody goes through all


class FieldColumn(Protocol):
    """One field of all values."""

    def __len__(self) -> int: ...

    def values(self, start: int, stop: int) -> list[FieldValue]:
        """The values from one position to another."""

    def take(self, positions: np.ndarray) -> FieldColumn:
        """The column with the values at these positions, in that order."""

    def arrow(self, kind: pa.DataType) -> pa.Array:
        """All values in Arrow's form."""


class ArrowColumn:
    """A column of numbers, texts or lists of texts, as an Arrow array; a list becomes a tuple, null None."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def values(self, start: int, stop: int) -> list[FieldValue]:
        found: list[FieldValue] = self.array.slice(start, stop - start).to_pylist()
        if pa.types.is_list(self.array.type):
            return [None if each is None else tuple(each) for each in found]
        return found

    def take(self, positions: np.ndarray) -> ArrowColumn:
        return ArrowColumn(self.array.take(pa.array(positions)))

    def arrow(self, kind: pa.DataType) -> pa.Array:
        return self.array.cast(kind)


class DictionaryColumn:
    """A column of values that many have in common, such as a search space. codes: (n,) positions in `distinct`.

    Values are told apart as texts, numbers and tuples, any others by identity.
    """

    def __init__(self, codes: np.ndarray, distinct: Sequence[FieldValue]) -> None:
        numbers, self.distinct = _numbered(distinct)
        self.codes = numbers[codes]
        self._all_used = False

    @classmethod
    def of(cls, values: Iterable[FieldValue]) -> DictionaryColumn:
        """The column of these values."""
        return cls._of(*_numbered(values))

    @classmethod
    def _of(cls, codes: np.ndarray, distinct: list[FieldValue], *, all_used: bool = True) -> DictionaryColumn:
        made = cls.__new__(cls)
        made.codes, made.distinct, made._all_used = codes, distinct, all_used
        return made

    def __len__(self) -> int:
        return len(self.codes)

    def values(self, start: int, stop: int) -> list[FieldValue]:
        distinct = self.distinct
        return [distinct[code] for code in self.codes[start:stop].tolist()]

    def take(self, positions: np.ndarray) -> DictionaryColumn:
        return DictionaryColumn._of(self.codes[positions], self.distinct, all_used=False)

    def pruned(self) -> DictionaryColumn:
        """The same values, `distinct` without those that do not occur."""
        if self._all_used:
            return self
        used = np.unique(self.codes)
        places = np.zeros(len(self.distinct), dtype=np.int32)
        places[used] = np.arange(len(used))
        return DictionaryColumn._of(places[self.codes], [self.distinct[code] for code in used.tolist()])

    def map(self, function: Callable[[FieldValue], FieldValue]) -> DictionaryColumn:
        """The column of what a function makes of the values; it is called once for each distinct one."""
        mine = self.pruned()
        return DictionaryColumn(mine.codes, [function(each) for each in mine.distinct])

    def test(self, predicate: Callable[[FieldValue], bool]) -> np.ndarray:
        """(n,) whether a value passes."""
        mine = self.pruned()
        return np.array([predicate(each) for each in mine.distinct], dtype=bool)[mine.codes]

    def arrow(self, kind: pa.DataType) -> pa.Array:
        mine = self.pruned()
        return pa.array(mine.distinct, kind).take(pa.array(mine.codes))


class DerivedColumn:
    """A column that is made of another one, value by value, when it is asked for."""

    def __init__(self, function: Callable[[FieldValue], FieldValue], column: FieldColumn) -> None:
        self._function, self._column = function, column

    def __len__(self) -> int:
        return len(self._column)

    def values(self, start: int, stop: int) -> list[FieldValue]:
        return [self._function(each) for each in self._column.values(start, stop)]

    def take(self, positions: np.ndarray) -> DerivedColumn:
        return DerivedColumn(self._function, self._column.take(positions))

    def arrow(self, kind: pa.DataType) -> pa.Array:
        return pa.array(self.values(0, len(self)), kind)


def constant(value: FieldValue, length: int) -> DictionaryColumn:
    """The column of one value."""
    return DictionaryColumn(np.zeros(length, dtype=np.int32), [value])


def combined(function: Callable[..., FieldValue], *columns: DictionaryColumn) -> DictionaryColumn:
    """The column of what a function makes of several columns' values; it is called once for each combination."""
    codes, first = _combinations(columns)
    mine = [column.take(first) for column in columns]
    rows = zip(*(column.values(0, len(first)) for column in mine), strict=True)
    return DictionaryColumn(codes, [function(*values) for values in rows])


def _combinations(columns: Sequence[DictionaryColumn]) -> tuple[np.ndarray, np.ndarray]:
    """(n,) the number of each row's combination of values, and where each combination is first."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        codes = codes * len(column.distinct) + column.codes
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return inverse, first


def column_of(values: Sequence[FieldValue]) -> FieldColumn:
    """The column of some values: texts and whole numbers in Arrow's form, any others shared."""
    for kind, arrow in ((str, pa.string()), (int, pa.int64())):
        if values and all(type(each) is kind for each in values):
            return ArrowColumn(pa.array(values, arrow))
    return DictionaryColumn.of(values)


def chained(columns: Sequence[FieldColumn]) -> FieldColumn:
    """The values of some columns (at least one), one after the other."""
    if all(isinstance(column, ArrowColumn) for column in columns):
        return ArrowColumn(pa.concat_arrays([column.array for column in columns if isinstance(column, ArrowColumn)]))
    if all(isinstance(column, Columnar) for column in columns):
        return Columnar.joined([column for column in columns if isinstance(column, Columnar)])
    if all(isinstance(column, DictionaryColumn) for column in columns):
        found = [column for column in columns if isinstance(column, DictionaryColumn)]
        starts = np.cumsum([0, *(len(column.distinct) for column in found)])
        codes = [column.codes + start for column, start in zip(found, starts, strict=False)]
        return DictionaryColumn(np.concatenate(codes), [value for column in found for value in column.distinct])
    return column_of([value for column in columns for value in column.values(0, len(column))])


class Columnar(Sequence[T], Generic[T]):
    """A sequence of values of one dataclass, held as columns. It is equal to any sequence of equal values.

    kind: the dataclass. columns: by field; the field's default for all where there is none. length: of the sequence.
    """

    def __init__(self, kind: type[T], length: int, columns: Mapping[str, FieldColumn]) -> None:
        self.kind = kind
        self._length = length
        self.columns: dict[str, FieldColumn] = {
            field.name: columns[field.name] if field.name in columns else constant(_default(field), length)
            for field in _fields(kind)
        }
        assert all(len(column) == length for column in self.columns.values())

    @classmethod
    def of(cls, kind: type[T], values: Iterable[T], **columns: FieldColumn) -> Columnar[T]:
        """These values as columns. columns: those that are there already."""
        if isinstance(values, Columnar):
            return values
        held = list(values)
        names = [field.name for field in _fields(kind)]
        found = {name: column_of([getattr(each, name) for each in held]) for name in names if name not in columns}
        return cls(kind, len(held), {**found, **columns})

    @classmethod
    def joined(cls, parts: Sequence[Columnar[T]]) -> Columnar[T]:
        """The values of some sequences (at least one), one after the other."""
        parts = [part for part in parts if part] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        names = parts[0].columns
        columns = {name: chained([part.columns[name] for part in parts]) for name in names}
        return Columnar(parts[0].kind, sum(map(len, parts)), columns)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, position: int) -> T: ...

    @overload
    def __getitem__(self, position: slice) -> Columnar[T]: ...

    def __getitem__(self, position: int | slice) -> T | Columnar[T]:
        if isinstance(position, slice):
            return self.take(np.arange(*position.indices(len(self))))
        place = operator.index(position)
        place += len(self) if place < 0 else 0
        if not 0 <= place < len(self):
            raise IndexError(f"position {position} of {len(self)}")
        return self.values(place, place + 1)[0]

    def __iter__(self) -> Iterator[T]:
        for start in range(0, len(self), AT_ONCE):
            yield from self.values(start, min(len(self), start + AT_ONCE))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(mine == yours for mine, yours in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} of {self.kind.__name__})"

    def values(self, start: int, stop: int) -> list[T]:
        """The values from one position to another."""
        columns = [column.values(start, stop) for column in self.columns.values()]
        return [self.kind(*each) for each in zip(*columns, strict=True)]

    def take(self, positions: np.ndarray) -> Columnar[T]:
        """The values at these positions, in that order; or where a (n,) mask says so."""
        if positions.dtype == bool:
            positions = np.flatnonzero(positions)
        columns = {name: column.take(positions) for name, column in self.columns.items()}
        return Columnar(self.kind, len(positions), columns)

    def with_columns(self, **columns: FieldColumn) -> Columnar[T]:
        """The same values with other columns in place of some."""
        return Columnar(self.kind, len(self), {**self.columns, **columns})

    def arrow(self, kind: pa.DataType) -> pa.Array:
        raise TypeError(f"{self.kind.__name__} has no form in Arrow; its columns have")

    def numbers(self, name: str, missing: int = 0) -> np.ndarray:
        """(n,) a column of whole numbers; `missing` stands for None."""
        return self.columns[name].arrow(pa.int64()).fill_null(missing).to_numpy(zero_copy_only=False)

    def texts(self, name: str) -> pa.Array:
        """A column of texts."""
        return self.columns[name].arrow(pa.string())

    def shared(self, name: str) -> DictionaryColumn:
        """A column by its distinct values, each of which occurs."""
        column = self.columns[name]
        return (
            column if isinstance(column, DictionaryColumn) else DictionaryColumn.of(column.values(0, len(self)))
        ).pruned()

    def present(self, name: str) -> np.ndarray:
        """(n,) where a column is not None."""
        column = self.columns[name]
        if isinstance(column, ArrowColumn):
            return np.asarray(column.array.is_valid())
        return self.shared(name).test(lambda value: value is not None)

    def first_of_each(self, *names: str) -> Columnar[T]:
        """The first value with each combination of these shared columns, in order: thousands have few of them."""
        return self.take(np.sort(_combinations([self.shared(name) for name in names])[1]))


def _numbered(values: Iterable[FieldValue]) -> tuple[np.ndarray, list[FieldValue]]:
    """((n,) the number of each value, the distinct values by their numbers)."""
    known: dict[FieldValue, int] = {}
    distinct: list[FieldValue] = []

    def number(value: FieldValue) -> int:
        found = known.setdefault(_mark(value), len(known))
        if found == len(distinct):
            distinct.append(value)
        return found

    return np.fromiter(map(number, values), dtype=np.int32), distinct


def _mark(value: FieldValue) -> FieldValue:
    """What tells a value from others."""
    if isinstance(value, str | tuple | int | None):
        return type(value), value
    return id(value)


def _fields(kind: type) -> tuple[Field[FieldValue], ...]:
    return fields(kind)


def _default(field: Field[FieldValue]) -> FieldValue:
    if field.default is not MISSING:
        return field.default
    raise TypeError(f"the column {field.name!r} is missing")
