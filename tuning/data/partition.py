"""Partitioning: a keyed table or a frame is divided once into files of the run directory, a few customers in each.

Rows are streamed, so a table may be larger than memory: what is held is the piece being read and at most
`BUFFER_BYTES` of rows waiting to be written. All rows of a customer go to one bucket, in the order in which they
stand in the table; a bucket is about one worker's share and consists of one or more immutable Parquet files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tuning.basics.columnar import Columnar, DictionaryColumn
from tuning.data.balancing import balance, batch_count
from tuning.data.column_types import runs_of_one_schema
from tuning.data.customers import Customer, Customers, unpartitioned
from tuning.data.formats.memory_frame import to_arrow
from tuning.data.keyed_tables import KeyedTable, find_tables
from tuning.data.keys import row_keys
from tuning.definition.cpus import default_slots
from tuning.definition.definition import Definition
from tuning.errors import CustomerError, DataError
from tuning.storage.data_roots import add_own_rows
from tuning.storage.run_directory import RunDirectory

BUCKET_BYTES = 1 << 27
BUFFER_BYTES = 1 << 28
FOLDER = "data"


def partition(definition: Definition, customers: Sequence[Customer], directory: RunDirectory) -> Customers:
    """Write the rows of unpartitioned customers into the run directory, and return the customers with their files.

    Every call writes files of its own, so that two owners of a run never write the same one.
    """
    found = Columnar.of(Customer, customers)
    places = np.flatnonzero(unpartitioned(found))
    if not places.size:
        return found
    coming = found.take(places)
    add_own_rows(directory.locate(FOLDER))
    folder = f"{FOLDER}/{uuid4().hex[:12]}"
    files = np.full(len(coming), -1)  # of each customer, the position of its files in `written`
    written: list[tuple[str, ...]] = []
    if not definition.by or isinstance(definition.data, Mapping):
        for number, customer in enumerate(coming):
            frame = definition.data[customer.id] if isinstance(definition.data, Mapping) else definition.data
            try:
                written.append((_write(directory, f"{folder}/{number:05d}.parquet", to_arrow(frame)),))
            except CustomerError as error:
                raise DataError(f"data: customer {customer.id!r}: {error}") from error
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
    before = found.shared("files")
    codes = before.codes.copy()
    codes[places] = len(before.distinct) + files
    return found.with_columns(files=DictionaryColumn(codes, [*before.distinct, *written]))


def _divide(
    table: KeyedTable, definition: Definition, here: Customers, directory: RunDirectory, prefix: str
) -> tuple[np.ndarray, list[tuple[str, ...]]]:
    """Stream one table into buckets, and return the bucket of each customer and the files of each bucket."""
    sizes = here.numbers("size")
    slots = definition.slots or default_slots()
    count = max(batch_count(len(here), slots), int(sizes.sum()) // BUCKET_BYTES)
    groups = balance(sizes, min(count, len(here)))
    buckets = np.empty(len(here), dtype=np.int64)
    for number, group in enumerate(groups):
        buckets[group] = number
    bucket_of = dict(zip(here.columns["key"].values(0, len(here)), buckets.tolist(), strict=True))
    waiting = _Waiting(directory, prefix, len(groups))
    for piece in pieces(table, definition):
        codes, keys = row_keys(piece, definition.by)
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


def pieces(table: KeyedTable, definition: Definition) -> Iterator[pa.Table]:
    """Yield a table piece by piece, in its order."""
    try:
        for part in table.parts(definition):
            yield from part.pieces()
    except CustomerError as error:
        raise DataError(f"data: {error}") from error
