"""Partitioning: a keyed table or a frame is divided once into files of the run directory, a few customers in each.

Rows are streamed, so a table may be larger than memory: what is held is the piece being read and at most
`BUFFER_BYTES` of rows waiting to be written. All rows of a customer go to one bucket, in the order in which they
stand in the table; a bucket is about one worker's share and consists of one or more immutable Parquet files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tuning.columnar import Column, Columnar, Plain, Shared
from tuning.data.as_written import written_table
from tuning.data.balancing import balance, shard_count
from tuning.data.column_types import refusal, runs_of_one_schema, with_sound_text
from tuning.data.customers import Customer, Customers, unpartitioned
from tuning.data.frames import is_mixed, to_arrow
from tuning.data.keyed_tables import KeyedTable, find_tables
from tuning.data.keys import hive_values, key_table, row_keys
from tuning.data.reading import (
    check_names,
    file_name,
    is_parquet,
    open_parquet,
    read_chunks,
    read_schema,
    reading_errors,
)
from tuning.definition.definition import Definition
from tuning.errors import CustomerError, DataError
from tuning.storage.run_directory import RunDirectory

BUCKET_BYTES = 1 << 27
BUFFER_BYTES = 1 << 28
ROWS_AT_ONCE = 1 << 17
FOLDER = "data"


def partition(definition: Definition, customers: Sequence[Customer], directory: RunDirectory) -> Customers:
    """Write the rows of unpartitioned customers into the run directory; the customers with their files.

    Every call writes files of its own, so that two owners of a run never write the same one.
    """
    found = Columnar.of(Customer, customers)
    places = np.flatnonzero(unpartitioned(found))
    if not places.size:
        return found
    coming = found.take(places)
    folder = f"{FOLDER}/{uuid4().hex[:12]}"
    plain = not definition.by or isinstance(definition.data, Mapping)
    files = np.full(len(coming), -1)  # of each customer, the position of its files in `written`
    written: list[tuple[str, ...]] = []
    if plain:
        for number, customer in enumerate(coming):
            frame = definition.data[customer.id] if isinstance(definition.data, Mapping) else definition.data
            written.append((_write(directory, f"{folder}/{number:05d}.parquet", _rows_or_reason(frame)),))
        files = np.arange(len(coming))
    else:
        for table in find_tables(definition.data, definition.by):
            here = np.flatnonzero(coming.numbers("table") == table.number)
            if here.size:
                prefix = f"{folder}/{table.number:05d}"
                buckets, filled = _divide(table, definition, coming.take(here), directory, prefix)
                files[here] = buckets + len(written)
                written += filled
    if (lost := np.flatnonzero(files < 0)).size:
        name = coming[lost[0]].id
        raise DataError(f"data: it changed while it was read: the rows of customer {name!r} are not there any more.")
    return _with_files(found, places, files, written, keep_keys=not plain)


def _with_files(
    found: Customers, places: np.ndarray, files: np.ndarray, written: Sequence[tuple[str, ...]], *, keep_keys: bool
) -> Customers:
    """The customers after those at some places have been given files. files: positions in `written`."""
    before = found.shared("files")
    codes = before.codes.copy()
    codes[places] = len(before.distinct) + files
    columns: dict[str, Column] = {"files": Shared(codes, [*before.distinct, *written])}
    blocks = found.numbers("first_block").copy()
    blocks[places] = 0
    columns["first_block"] = Plain(pa.array(blocks))
    if not keep_keys:
        keys = found.columns["key"].values(0, len(found))
        for place in places:
            keys[place] = None
        columns["key"] = Shared.of(keys)
    return found.with_columns(**columns)


def _divide(
    table: KeyedTable, definition: Definition, here: Customers, directory: RunDirectory, prefix: str
) -> tuple[np.ndarray, list[tuple[str, ...]]]:
    """Stream one table into buckets: (the bucket of each customer, the files of each bucket)."""
    sizes = here.numbers("size")
    slots = definition.slots or len(os.sched_getaffinity(0))
    count = max(shard_count(len(here), slots), int(sizes.sum()) // BUCKET_BYTES)
    groups = balance(sizes, min(count, len(here)))
    buckets = np.empty(len(here), dtype=np.int64)
    for number, group in enumerate(groups):
        buckets[group] = number
    bucket_of = dict(zip(here.columns["key"].values(0, len(here)), buckets.tolist(), strict=True))
    waiting = _Waiting(directory, prefix, len(groups))
    for piece, keys_of in pieces(table, definition):
        codes, keys = row_keys(keys_of, definition.by)
        own = np.array([bucket_of.get(key, -1) for key in keys], dtype=np.int64)[codes]
        order = np.argsort(own, kind="stable")
        bounds = np.searchsorted(own[order], np.arange(len(groups) + 1))
        for bucket, (start, end) in enumerate(pairwise(bounds.tolist())):
            if end > start:  # a copy: a slice would keep the whole piece in memory until its last bucket is written
                waiting.add(bucket, piece.take(order[start:end]))
    waiting.flush()
    return buckets, [tuple(files) for files in waiting.files]


class _Waiting:
    """Rows on their way into buckets; the fullest bucket is written whenever too many wait."""

    def __init__(self, directory: RunDirectory, prefix: str, buckets: int) -> None:
        self.directory = directory
        self.prefix = prefix
        self.files: list[list[str]] = [[] for _ in range(buckets)]
        self._rows: list[list[pa.Table]] = [[] for _ in range(buckets)]
        self._bytes = [0] * buckets
        self._total = 0

    def add(self, bucket: int, rows: pa.Table) -> None:
        self._rows[bucket].append(rows)
        self._bytes[bucket] += rows.nbytes
        self._total += rows.nbytes
        while self._total > BUFFER_BYTES:
            self._flush(self._bytes.index(max(self._bytes)))

    def flush(self) -> None:
        for bucket, rows in enumerate(self._rows):
            if rows:
                self._flush(bucket)

    def _flush(self, bucket: int) -> None:
        for rows in runs_of_one_schema(self._rows[bucket]):
            name = f"{self.prefix}/{bucket:05d}-{len(self.files[bucket]):04d}.parquet"
            self.files[bucket].append(_write(self.directory, name, rows))
        self._total -= self._bytes[bucket]
        self._rows[bucket], self._bytes[bucket] = [], 0


def _write(directory: RunDirectory, name: str, rows: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, write_page_checksum=True)
    directory.write(name, sink.getvalue())
    return directory.locate(name)


def pieces(table: KeyedTable, definition: Definition) -> Iterator[tuple[pa.Table, pa.Table]]:
    """(rows, their key columns) of a table, piece by piece in its order."""
    by = definition.by
    if table.frame is not None:
        yield from _frame_pieces(table.frame, by)
        return
    for file in table.files:
        outside = hive_values(file.path)
        for rows in _file_pieces(file.path, definition, [name for name in by if name not in outside]):
            whole = with_columns(rows, outside)
            yield whole, pa.table([whole.column(name) for name in by], names=list(by))


def _frame_pieces(frame: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """A frame as one piece; where a column is not of one type, a piece per customer, whose own rows decide."""
    keys_of = key_table(frame, by)
    if not is_mixed(frame):
        yield to_arrow(frame), keys_of
        return
    codes, keys = row_keys(keys_of, by)
    order = np.argsort(codes, kind="stable")
    for rows in np.split(order, np.searchsorted(codes[order], np.arange(1, len(keys)))):
        yield to_arrow(frame.iloc[rows]), keys_of.take(rows)


def _rows_or_reason(frame: pd.DataFrame) -> pa.Table:
    """A customer's own frame; one that cannot be written leaves a reason in its place."""
    try:
        return to_arrow(frame)
    except CustomerError as error:
        return refusal(str(error))


def _file_pieces(path: str, definition: Definition, by: Sequence[str]) -> Iterator[pa.Table]:
    csv = definition.csv_options
    try:
        if not is_parquet(path):
            for frame in read_chunks(path, csv, columns=definition.needed_of(read_schema(path, csv)), text=by):
                yield written_table(frame, by)
            return
        with reading_errors(path, csv), open_parquet(path, streamed=True) as file:
            check_names(file.schema_arrow.names, f"the file {file_name(path)}", definition.limits.max_columns)
            columns = definition.needed_of(file.schema_arrow.names)
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=columns):
                yield with_sound_text(pa.Table.from_batches([batch]))
    except CustomerError as error:
        raise DataError(f"data: {error}") from error


def with_columns(rows: pa.Table, values: Mapping[str, str | None]) -> pa.Table:
    """The rows with columns that hold one value each (what a path spells out)."""
    for name, value in values.items():
        column = pa.array([value], pa.string()).take(pa.array([0] * rows.num_rows, pa.int32()))
        position = rows.schema.get_field_index(name)
        rows = rows.append_column(name, column) if position < 0 else rows.set_column(position, name, column)
    return rows
