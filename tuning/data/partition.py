"""Partitioning: a keyed table or a frame is divided once into files of the run directory, a few customers in each.

Rows are streamed, so a table may be larger than memory: what is held is the piece being read and at most
`BUFFER_BYTES` of rows waiting to be written. All rows of a customer go to one bucket, in the order in which they
stand in the table; a bucket is about one worker's share and consists of one or more immutable Parquet files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tuning.data.as_written import written_table
from tuning.data.balancing import balance, shard_count
from tuning.data.column_types import refusal, runs_of_one_schema
from tuning.data.customers import Customer
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


def partition(definition: Definition, customers: Sequence[Customer], directory: RunDirectory) -> list[Customer]:
    """Write the rows of unpartitioned customers into the run directory; the customers with their files.

    Every call writes files of its own, so that two owners of a run never write the same one.
    """
    unpartitioned = [customer for customer in customers if customer.unpartitioned]
    if not unpartitioned:
        return list(customers)
    placed: dict[str, tuple[str, ...]] = {}
    folder = f"{FOLDER}/{uuid4().hex[:12]}"
    plain = not definition.by or isinstance(definition.data, Mapping)
    if plain:
        for number, customer in enumerate(unpartitioned):
            frame = definition.data[customer.id] if isinstance(definition.data, Mapping) else definition.data
            placed[customer.id] = (_write(directory, f"{folder}/{number:05d}.parquet", _rows_or_reason(frame)),)
    else:
        for table in find_tables(definition.data, definition.by):
            placed |= _divide(table, definition, unpartitioned, directory, f"{folder}/{table.number:05d}")
    lost = [customer.id for customer in unpartitioned if customer.id not in placed]
    if lost:
        raise DataError(f"data: it changed while it was read: the rows of customer {lost[0]!r} are not there any more.")
    return [
        replace(customer, files=placed[customer.id], first_block=0, key=None if plain else customer.key)
        if customer.unpartitioned
        else customer
        for customer in customers
    ]


def _divide(
    table: KeyedTable, definition: Definition, unpartitioned: Sequence[Customer], directory: RunDirectory, prefix: str
) -> dict[str, tuple[str, ...]]:
    """Stream one table into buckets; the files of each customer."""
    here = [customer for customer in unpartitioned if customer.table == table.number]
    if not here:
        return {}
    sizes = [customer.size for customer in here]
    slots = definition.slots or len(os.sched_getaffinity(0))
    count = max(shard_count(len(here), slots), sum(sizes) // BUCKET_BYTES)
    buckets = balance(sizes, min(count, len(here)))
    bucket_of = {here[position].key: number for number, bucket in enumerate(buckets) for position in bucket}
    waiting = _Waiting(directory, prefix, len(buckets))
    for piece, keys_of in pieces(table, definition):
        codes, keys = row_keys(keys_of, definition.by)
        first_block = np.array([bucket_of.get(key, -1) for key in keys], dtype=np.int64)[codes]
        order = np.argsort(first_block, kind="stable")
        bounds = np.searchsorted(first_block[order], np.arange(len(buckets) + 1))
        for bucket, (start, end) in enumerate(pairwise(bounds.tolist())):
            if end > start:  # a copy: a slice would keep the whole piece in memory until its last bucket is written
                waiting.add(bucket, piece.take(order[start:end]))
    waiting.flush()
    return {
        here[position].id: tuple(waiting.files[number]) for number, bucket in enumerate(buckets) for position in bucket
    }


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
                yield pa.Table.from_batches([batch])
    except CustomerError as error:
        raise DataError(f"data: {error}") from error


def with_columns(rows: pa.Table, values: Mapping[str, str | None]) -> pa.Table:
    """The rows with columns that hold one value each (what a path spells out)."""
    for name, value in values.items():
        column = pa.array([value], pa.string()).take(pa.array([0] * rows.num_rows, pa.int32()))
        position = rows.schema.get_field_index(name)
        rows = rows.append_column(name, column) if position < 0 else rows.set_column(position, name, column)
    return rows
