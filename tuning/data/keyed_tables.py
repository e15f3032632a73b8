"""Tables whose key columns say whose row it is: which customers they hold, and where each one's rows are.

Only key columns are read here, block by block. A table of a format that has rows by key (Parquet) is read in place when
that costs little: it is small, or its rows are ordered by customer so that a worker's customers are in few blocks. Any
other table (CSV, Parquet in another order, a frame in memory) is partitioned once, see `tuning.data.partition`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tuning.basics.columnar import DictionaryColumn
from tuning.data.column_types import concatenated
from tuning.data.files import File, file_ids, find_files, is_glob
from tuning.data.formats.memory_frame import FrameSource
from tuning.data.keys import (
    Key,
    check_columns,
    customer_ids,
    hive_values,
    key_lists,
    key_texts,
    plain_column,
)
from tuning.data.registry import file_source, format_of
from tuning.data.table_source import FileSource, KeyBlock, Piece, TableSource
from tuning.definition.definition import Definition
from tuning.errors import CustomerError, DataError

IN_PLACE_BYTES = 1 << 26  # a Parquet table up to this size is read by every worker, whatever its order
IN_PLACE_PASSES = 2.0  # of a larger one: how often it may be read in all
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

    def parts(self, definition: Definition) -> Iterator[TablePart]:
        """Its files, or its frame, in order."""
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
        """The part that a file is."""
        return cls(file_source(path, definition.csv_options), definition, hive_values(path))

    @property
    def _inside(self) -> list[str]:
        """The key columns that the source has."""
        return [name for name in self.definition.by if name not in self.outside]

    def columns(self) -> list[str]:
        """The names of all columns."""
        return [*self.source.columns(), *self.outside]

    def pieces(self) -> Iterator[Piece]:
        """The needed columns of all rows in their order, as `TableSource.pieces` gives them."""
        for piece in self.source.pieces(self._inside, self.definition.needed_of):
            yield self._whole(piece)

    def pieces_as_written(self) -> Iterator[tuple[Piece, pa.Table]]:
        """All rows of a file in their order, as `FileSource.pieces_as_written` gives them."""
        assert isinstance(self.source, FileSource)
        for piece, came in self.source.pieces_as_written(self._inside):
            yield self._whole(piece), came

    def _whole(self, piece: Piece) -> Piece:
        rows = with_columns(piece.rows, self.outside)
        return Piece(rows, self._with_outside(piece.keys, rows.num_rows))

    def key_blocks(self) -> Iterator[KeyBlock]:
        """The key columns of all rows in their order, as `TableSource.key_blocks` gives them."""
        for block in self.source.key_blocks(self._inside):
            yield KeyBlock(self._with_outside(block.keys, block.rows), block.rows, block.size)

    def _with_outside(self, keys: pa.Table, count: int) -> pa.Table:
        columns = [
            pa.array([self.outside[name]] * count, pa.string()) if name in self.outside else keys.column(name)
            for name in self.definition.by
        ]
        return pa.table(columns, names=list(self.definition.by))


@dataclass(frozen=True, eq=False)
class Index:
    """A table's customers, in the order in which they appear. blocks: the file of each block (row group, chunk);
    sizes: its bytes.

    ids, keys, rows: (n,) of each customer. first, last: (n,) the blocks between which its rows are.
    """

    table: KeyedTable
    ids: pa.Array
    keys: pa.Array
    rows: np.ndarray
    first: np.ndarray
    last: np.ndarray
    blocks: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def files(self) -> DictionaryColumn:
        """The files in which each customer's rows are (one or more of them)."""
        paths = [file.path for file in self.table.files]
        blocks = np.array(self.blocks)
        spans = blocks[self.first] * len(paths) + blocks[self.last]
        distinct, codes = np.unique(spans, return_inverse=True)
        bounds = [divmod(span, len(paths)) for span in distinct.tolist()]
        return DictionaryColumn(codes, [tuple(paths[low : high + 1]) for low, high in bounds])

    def in_place(self, batches: int) -> bool:
        """Whether workers read the table where it is: each little of it, or all together not much more than all of it.

        batches: of consecutive customers; how many there will be.
        """
        if self.table.frame is not None or not all(
            format_of(file.path).dataset_format is not None for file in self.table.files
        ):
            return False
        if self.table.size <= IN_PLACE_BYTES:
            return True
        read = self._read(batches)
        return max(read) <= IN_PLACE_BYTES or sum(read) <= IN_PLACE_PASSES * sum(self.sizes)

    def _read(self, batches: int) -> list[int]:
        """The bytes of the blocks that each batch needs."""
        order = np.lexsort((self.last, self.first))
        before = np.cumsum(self.rows[order]) - self.rows[order]
        starts = np.unique(before * batches // max(1, int(self.rows.sum())), return_index=True)[1]
        low = np.minimum.reduceat(self.first[order], starts)
        high = np.maximum.reduceat(self.last[order], starts)
        total = np.concatenate([[0], np.cumsum(self.sizes)])
        found: list[int] = (total[high + 1] - total[low]).tolist()
        return found

    @property
    def in_order(self) -> bool:
        """Whether consecutive customers are in consecutive blocks, so that it matters which ones share a worker."""
        return self.table.size > IN_PLACE_BYTES


def find_tables(data: Any, by: Sequence[str]) -> list[KeyedTable]:
    """The keyed tables of a definition's data: each file of a glob is one, a folder or a list of files is one.

    Files whose folders spell out all keys (`zone=141/…`) are parts of one table, however they were found.
    """
    if isinstance(data, pd.DataFrame):
        return [KeyedTable(0, frame=data)]
    files = find_files(data)
    spelled = all(set(by) <= set(hive_values(file.path)) for file in files)
    if is_glob(data) and len(files) > 1 and not spelled:
        names = file_ids(files)
        return [
            KeyedTable(number, (file,), prefix=f"{name}/")
            for number, (file, name) in enumerate(zip(files, names, strict=True))
        ]
    return [KeyedTable(0, tuple(files))]


def index(table: KeyedTable, definition: Definition) -> Index:
    """Read a table's key columns: its customers, how many rows each has, and between which blocks they are."""
    by = definition.by
    try:
        counts, blocks, sizes = _count(table, definition)
    except CustomerError as error:
        raise DataError(f"data: {error}") from error
    texts = pa.table(
        [*(key_texts(counts.column(name)) for name in _positions(by)), *counts.columns[len(by) :]],
        names=counts.column_names,
    )
    if not all(pa.types.is_integer(field.type) for field in counts.schema):
        texts = _merged([texts], by)  # the same value in two types, or NaN beside null
    columns = [texts.column(name).combine_chunks() for name in _positions(by)]
    rows, first, last = (texts.column(name).to_numpy() for name in ("n", "first", "last"))
    return Index(table, customer_ids(columns, table.prefix), key_lists(columns), rows, first, last, blocks, sizes)


def _count(table: KeyedTable, definition: Definition) -> tuple[pa.Table, tuple[int, ...], tuple[int, ...]]:
    by = definition.by
    blocks: list[int] = []
    sizes: list[int] = []
    parts: list[pa.Table] = []
    waiting = 0
    for number, part in enumerate(table.parts(definition)):
        check_columns(by, part.columns())
        for block in part.key_blocks():
            parts.append(_counted(block.keys, by, len(blocks)))
            blocks.append(number)
            sizes.append(block.size)
            waiting += parts[-1].num_rows
            if waiting > MERGE_ROWS:
                parts = [_merged(parts, by)]
                waiting = 0
    return _merged(parts, by), tuple(blocks), tuple(sizes)


def _counted(part: pa.Table, by: Sequence[str], block: int) -> pa.Table:
    """The keys of a block with their number of rows; columns are key columns by position, `n`, `first`, `last`."""
    names = _positions(by)
    plain = pa.table([plain_column(part.column(name)) for name in by], names=names)
    try:
        counts = plain.group_by(names, use_threads=False).aggregate([([], "count_all")])
    except pa.ArrowNotImplementedError as error:
        kinds = ", ".join(f"{name!r} is {part.schema.field(name).type}" for name in by)
        raise DataError(f"by: {kinds}; key columns hold numbers, text, dates or booleans.") from error
    here = pa.array([block] * counts.num_rows, pa.int64())
    columns = [*(counts.column(name) for name in names), counts.column("count_all"), here, here]
    return pa.table(columns, names=[*names, "n", "first", "last"])


def _merged(parts: list[pa.Table], by: Sequence[str]) -> pa.Table:
    names = _positions(by)
    together = concatenated(parts, key_texts)
    merged = together.group_by(names, use_threads=False).aggregate([("n", "sum"), ("first", "min"), ("last", "max")])
    return merged.select([*names, "n_sum", "first_min", "last_max"]).rename_columns([*names, "n", "first", "last"])


def _positions(by: Sequence[str]) -> list[str]:
    return [str(position) for position in range(len(by))]


def rows_of_file(path: str, definition: Definition, keys: Sequence[Key]) -> pa.Table:
    """The needed columns of all rows of some keys in a file that is read in place, and of few others."""
    source = file_source(path, definition.csv_options)
    rows = source.rows_of(definition.by, keys, definition.needed_of, definition.limits)
    return with_columns(rows, hive_values(path))


def with_columns(rows: pa.Table, values: Mapping[str, str | None]) -> pa.Table:
    """The rows with columns that hold one value each (what a path spells out)."""
    for name, value in values.items():
        column = pa.array([value], pa.string()).take(pa.array([0] * rows.num_rows, pa.int32()))
        position = rows.schema.get_field_index(name)
        rows = rows.append_column(name, column) if position < 0 else rows.set_column(position, name, column)
    return rows
