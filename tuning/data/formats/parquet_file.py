"""Parquet, read by pyarrow; page checksums are verified where a file has them, as a run's own files have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tuning.data.column_types import to_frame, with_sound_text
from tuning.data.file_access import open_file, reading_errors
from tuning.data.table_source import (
    PIECE_ROWS,
    ColumnChoice,
    FileSource,
    all_columns,
    check_names,
    check_present,
)
from tuning.definition.customer_limits import UNLIMITED, Extent, Limits

STREAM_BYTES = 1 << 26  # read ahead, over all columns, where a file is read piece by piece


class ParquetSource(FileSource):
    """A Parquet file."""

    title = "Parquet"
    suffixes = (".parquet", ".pq")

    def columns(self) -> list[str]:
        with reading_errors(self.path), self._open() as file:
            return _names(file)

    def read(self, *, rows: int | None = None, limits: Limits = UNLIMITED) -> pd.DataFrame:
        with reading_errors(self.path), self._open(streamed=rows is not None) as file:
            count, names = file.metadata.num_rows, _names(file)
            limits.check(self.named, Extent(count, len(names)))
            check_names(names, self.named)
            if rows is None or rows >= count:
                return to_frame(file.read(use_threads=False))
            return to_frame(_first_rows(file, rows))

    def pieces(self, keys: Sequence[str] = (), choose: ColumnChoice = all_columns) -> Iterator[pa.Table]:
        with reading_errors(self.path), self._open(streamed=True) as file:
            names = _names(file)
            check_names(names, self.named)
            check_present(keys, names)
            chosen = choose(names)
            if not file.metadata.num_rows:
                empty = file.schema_arrow.empty_table()
                yield empty if chosen is None else empty.select(list(chosen))
            columns = None if chosen is None else list(chosen)
            for batch in file.iter_batches(batch_size=PIECE_ROWS, columns=columns):
                yield with_sound_text(pa.Table.from_batches([batch]))

    def write(self, stream: BinaryIO, tables: Iterable[pa.Table]) -> None:
        writer: pq.ParquetWriter | None = None
        for table in tables:
            writer = writer or pq.ParquetWriter(stream, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()

    @contextlib.contextmanager
    def _open(self, *, streamed: bool = False) -> Iterator[pq.ParquetFile]:
        """Open the file with pyarrow.

        streamed: in memory is only what is being read. Without, pyarrow reads ahead and keeps the whole file's bytes.
        """
        with open_file(self.path) as stream:
            if not streamed:
                yield pq.ParquetFile(stream, page_checksum_verification=True)
                return
            metadata = pq.read_metadata(stream)
            size = min(STREAM_BYTES // 4, max(1 << 14, STREAM_BYTES // max(1, metadata.num_columns)))
            yield pq.ParquetFile(
                stream, metadata=metadata, pre_buffer=False, buffer_size=size, page_checksum_verification=True
            )


FORMAT = ParquetSource


def _names(file: pq.ParquetFile) -> list[str]:
    return [str(name) for name in file.schema_arrow.names]


def _first_rows(file: pq.ParquetFile, rows: int) -> pa.Table:
    """Return the first rows; no more row groups are read than needed."""
    batches, found = [], 0
    for batch in file.iter_batches(batch_size=max(1, min(rows, 65_536))):
        batches.append(batch)
        found += batch.num_rows
        if found >= rows:
            break
    return pa.Table.from_batches(batches).slice(0, rows) if batches else file.read()
