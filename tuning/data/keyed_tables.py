"""Tables whose key columns say whose row it is: which customers they hold, and where each one's rows are.

Only key columns are read here, piece by piece. The rows are divided by customer once, see `tuning.data.partition`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tuning.data.cells import with_missing
from tuning.data.file_access import file_stamp, joined, look_at_each
from tuning.data.files import File, find_files, is_glob
from tuning.data.formats.memory_frame import FrameSource
from tuning.data.keys import (
    Key,
    check_columns,
    customer_ids,
    hive_values,
    key_lists,
    key_text,
    key_texts,
    plain_column,
)
from tuning.data.registry import file_source
from tuning.data.table_source import TableSource
from tuning.definition.definition import Definition
from tuning.errors import CustomerError, DataError

MERGE_ROWS = 4_000_000


@dataclass(frozen=True)
class KeyedTable:
    """One keyed table: its files, or a frame in memory. prefix: of its customers' ids, when each file is a table."""

    number: int
    files: tuple[File, ...] = ()
    frame: pd.DataFrame | None = None
    prefix: str = ""

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(file.size for file in self.files) if self.frame is None else FrameSource(self.frame).size

    @property
    def stamp(self) -> str:
        """What changes when one of its files is written; empty for a frame."""
        return joined([*look_at_each(file_stamp, (file.path for file in self.files)).values()])

    def parts(self, definition: Definition) -> Iterator[TablePart]:
        """Yield its files, or its frame, in order."""
        if self.frame is not None:
            yield TablePart(FrameSource(self.frame), definition, {})
        for file in self.files:
            yield TablePart.of_file(file.path, definition)


@dataclass(frozen=True)
class TablePart:
    """A file or a frame of a keyed table. What its path spells out (`zone=141/…`) are columns of its rows, too.

    Attributes:
        source: its other columns.
        definition: names the key columns and those that are needed.
        outside: the columns that hold one value each, by their names.
    """

    source: TableSource
    definition: Definition
    outside: Mapping[str, str | None]

    @classmethod
    def of_file(cls, path: str, definition: Definition) -> TablePart:
        """Make the part that a file is."""
        return cls(file_source(path, definition.csv_options), definition, hive_values(path))

    @property
    def _inside(self) -> list[str]:
        """The key columns that the source has."""
        return [name for name in self.definition.by if name not in self.outside]

    def may_hold(self, key: Key) -> bool:
        """Return whether its path spells out no other key."""
        values = zip(self.definition.by, key, strict=True)
        return all(name not in self.outside or key_text(self.outside[name]) == value for name, value in values)

    def columns(self) -> list[str]:
        """Return the names of all columns."""
        return [*self.source.columns(), *self.outside]

    def pieces(self) -> Iterator[pa.Table]:
        """Yield the needed columns of all rows in order, missing cells as null, with those that the path spells out."""
        for piece in self.source.pieces(self._inside, self.definition.needed_of):
            yield self._whole(piece)

    def all_pieces(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield all columns of the rows in the same way, each piece with the rows as they came."""
        for piece in self.source.pieces(self._inside):
            yield self._whole(piece), piece

    def _whole(self, piece: pa.Table) -> pa.Table:
        return with_columns(with_missing(piece, self.definition.csv_options), self.outside)

    def key_pieces(self) -> Iterator[pa.Table]:
        """Yield the key columns of all rows in order."""
        inside = self._inside
        for piece in self.source.pieces(inside, lambda names: inside or [name for name in names if name.strip()][:1]):
            yield with_columns(piece, self.outside)


def find_tables(data: Any, by: Sequence[str]) -> list[KeyedTable]:
    """Return the keyed tables of a definition's data: each file of a glob is one, a folder or a list of files is one.

    Files whose folders spell out all keys (`zone=141/…`) are parts of one table, however they were found.
    """
    if isinstance(data, pd.DataFrame):
        return [KeyedTable(0, frame=data)]
    files = find_files(data)
    spelled = all(set(by) <= set(hive_values(file.path)) for file in files)
    if is_glob(data) and len(files) > 1 and not spelled:
        return [KeyedTable(number, (file,), prefix=f"{file.id}/") for number, file in enumerate(files)]
    return [KeyedTable(0, tuple(files))]


def count_keys(table: KeyedTable, definition: Definition) -> tuple[pa.Array, pa.Array, np.ndarray]:
    """Return the id, the key and the number of rows of each customer of a table, in order of appearance."""
    try:
        counts = _counted(table, definition)
    except CustomerError as error:
        raise DataError(f"data: {error}") from error
    texts = _with_texts(counts)
    if not all(pa.types.is_integer(field.type) for field in counts.schema):
        texts = _merged([texts])  # the same value in two types, or NaN beside null
    columns = [column.combine_chunks() for column in texts.columns[:-1]]
    return customer_ids(columns, table.prefix), key_lists(columns), texts["n"].to_numpy()


def _counted(table: KeyedTable, definition: Definition) -> pa.Table:
    """Return the keys of a table with their number of rows; columns are key columns by position, and `n`."""
    by, names = definition.by, [str(place) for place in range(len(definition.by))]
    parts: list[pa.Table] = []
    waiting = 0
    for part in table.parts(definition):
        check_columns(by, part.columns())
        for keys in part.key_pieces():
            plain = pa.table([plain_column(keys[name]) for name in by], names=names)
            try:
                counts = plain.group_by(names, use_threads=False).aggregate([([], "count_all")])
            except pa.ArrowNotImplementedError as error:
                kinds = ", ".join(f"{name!r} is {keys.schema.field(name).type}" for name in by)
                raise DataError(f"by: {kinds}; key columns hold numbers, text, dates or booleans.") from error
            parts.append(counts.select([*names, "count_all"]).rename_columns([*names, "n"]))
            waiting += counts.num_rows
            if waiting > MERGE_ROWS:
                parts, waiting = [_merged(parts)], 0
    return _merged(parts)


def _merged(parts: list[pa.Table]) -> pa.Table:
    alike = all(part.schema == parts[0].schema for part in parts)
    *names, _ = parts[0].column_names
    found = pa.concat_tables(parts if alike else map(_with_texts, parts)).group_by(names, use_threads=False)
    return found.aggregate([("n", "sum")]).select([*names, "n_sum"]).rename_columns([*names, "n"])


def _with_texts(counts: pa.Table) -> pa.Table:
    *keys, rows = counts.columns
    return pa.table([*map(key_texts, keys), rows], names=counts.column_names)


def with_columns(rows: pa.Table, values: Mapping[str, str | None]) -> pa.Table:
    """Append columns that hold one value each, as a path spells them out."""
    for name, value in values.items():
        column = pa.array([value], pa.string()).take(pa.array([0] * rows.num_rows, pa.int32()))
        position = rows.schema.get_field_index(name)
        rows = rows.append_column(name, column) if position < 0 else rows.set_column(position, name, column)
    return rows
