"""Tables whose key columns say whose row it is: which customers they hold, and where each one's rows are.

Only key columns are read here, and of Parquet row group by row group. A Parquet table is read in place when that
costs little: it is small, or its rows are ordered by customer so that a worker's customers are in few row groups. Any
other table (CSV, Parquet in another order, a frame in memory) is partitioned once, see `tuning.data.partition`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tuning.columnar import Shared
from tuning.data.column_types import concatenated, with_sound_text
from tuning.data.files import File, file_ids, find_files, is_glob
from tuning.data.keys import (
    check_columns,
    customer_ids,
    hive_values,
    key_lists,
    key_table,
    key_texts,
    plain_column,
)
from tuning.data.reading import CsvOptions, is_parquet, open_parquet, read_chunks, read_schema, reading_errors
from tuning.errors import CustomerError, DataError
from tuning.preprocessing.columns import text_names

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
        if self.frame is not None:
            return int(self.frame.memory_usage(deep=False).sum())
        return sum(file.size for file in self.files)


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
    def files(self) -> Shared:
        """The files in which each customer's rows are (one or more of them)."""
        paths = [file.path for file in self.table.files]
        blocks = np.array(self.blocks)
        spans = blocks[self.first] * len(paths) + blocks[self.last]
        distinct, codes = np.unique(spans, return_inverse=True)
        bounds = [divmod(span, len(paths)) for span in distinct.tolist()]
        return Shared(codes, [tuple(paths[low : high + 1]) for low, high in bounds])

    def in_place(self, shards: int) -> bool:
        """Whether workers read the table where it is: each little of it, or all together not much more than all of it.

        shards: of consecutive customers; how many there will be.
        """
        if self.table.frame is not None or not all(is_parquet(file.path) for file in self.table.files):
            return False
        if self.table.size <= IN_PLACE_BYTES:
            return True
        read = self._read(shards)
        return max(read) <= IN_PLACE_BYTES or sum(read) <= IN_PLACE_PASSES * sum(self.sizes)

    def _read(self, shards: int) -> list[int]:
        """The bytes of the blocks that each shard needs."""
        order = np.lexsort((self.last, self.first))
        before = np.cumsum(self.rows[order]) - self.rows[order]
        starts = np.unique(before * shards // max(1, int(self.rows.sum())), return_index=True)[1]
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
        return [KeyedTable(0, frame=text_names(data))]
    files = find_files(data)
    spelled = all(set(by) <= set(hive_values(file.path)) for file in files)
    if is_glob(data) and len(files) > 1 and not spelled:
        names = file_ids(files)
        return [
            KeyedTable(number, (file,), prefix=f"{name}/")
            for number, (file, name) in enumerate(zip(files, names, strict=True))
        ]
    return [KeyedTable(0, tuple(files))]


def index(table: KeyedTable, by: Sequence[str], csv: CsvOptions) -> Index:
    """Read a table's key columns: its customers, how many rows each has, and between which blocks they are."""
    try:
        counts, blocks, sizes = _count(table, by, csv)
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


def _count(table: KeyedTable, by: Sequence[str], csv: CsvOptions) -> tuple[pa.Table, tuple[int, ...], tuple[int, ...]]:
    blocks: list[int] = []
    sizes: list[int] = []
    parts: list[pa.Table] = []
    waiting = 0
    for number, size, part in _blocks(table, by, csv):
        parts.append(_counted(part, by, len(blocks)))
        blocks.append(number)
        sizes.append(size)
        waiting += parts[-1].num_rows
        if waiting > MERGE_ROWS:
            parts = [_merged(parts, by)]
            waiting = 0
    return _merged(parts, by), tuple(blocks), tuple(sizes)


def _blocks(table: KeyedTable, by: Sequence[str], csv: CsvOptions) -> Iterator[tuple[int, int, pa.Table]]:
    """(file, bytes, key columns) of each row group of Parquet and of each chunk of CSV, in order."""
    if table.frame is not None:
        check_columns(by, list(map(str, table.frame.columns)))
        yield 0, table.size, key_table(table.frame, by)
        return
    for number, file in enumerate(table.files):
        outside = hive_values(file.path)
        inside = [name for name in by if name not in outside]
        check_columns(by, [*read_schema(file.path, csv), *outside])
        if is_parquet(file.path):
            with reading_errors(file.path, csv), open_parquet(file.path, streamed=True) as opened:
                for group in range(opened.metadata.num_row_groups):
                    meta = opened.metadata.row_group(group)
                    rows = with_sound_text(opened.read_row_group(group, columns=inside)) if inside else None
                    yield number, meta.total_byte_size, _with_outside(rows, meta.num_rows, outside, by)
        else:
            for frame in read_chunks(file.path, csv, columns=inside or None, text=inside):
                rows = key_table(frame, inside) if inside else None
                yield number, file.size, _with_outside(rows, len(frame), outside, by)


def _with_outside(rows: pa.Table | None, count: int, outside: Mapping[str, str | None], by: Sequence[str]) -> pa.Table:
    columns = [
        rows.column(name)
        if rows is not None and name not in outside
        else pa.array([outside[name]] * count, pa.string())
        for name in by
    ]
    return pa.table(columns, names=list(by))


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
