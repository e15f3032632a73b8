"""CSV, also compressed, read by pandas with whatever options of `pandas.read_csv` the definition names."""

from __future__ import annotations

import contextlib
import csv as csv_module
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import guarded, separator_options
from tuning.data.cells import LABELS, missing_texts, with_gaps, written_table
from tuning.data.column_types import cast_to_text
from tuning.data.file_access import file_name, open_file, reading_errors
from tuning.data.table_source import (
    PIECE_ROWS,
    ColumnChoice,
    FileSource,
    all_columns,
    check_names,
    check_present,
)
from tuning.definition.customer_limits import UNLIMITED, Extent, Limits
from tuning.errors import CustomerError
from tuning.notes import FileCode
from tuning.storage.names import without_query

COMPRESSED = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
# How files begin that are no CSV, whatever they are called: what they are, and what to do.
OTHER_CONTENT = {
    b"\x1f\x8b\x08": ("gzip", "let its name end in .csv.gz"),
    b"PK\x03\x04": ("a ZIP archive or a workbook", "unpack it, or save it as CSV"),
    b"PAR1": ("Parquet", "let its name end in .parquet"),
    b"BZh91AY&SY": ("bzip2", "let its name end in .csv.bz2"),
    b"\x28\xb5\x2f\xfd": ("zstd", "let its name end in .csv.zst"),
}
PIECE_BYTES = 1 << 24  # of a CSV read piece by piece; as text its cells take ten times as much
HEADER_BYTES = 1 << 22
DECIMAL_COMMA = re.compile(r"(^|[;|\t])-?\d+,\d+([;|\t]|$)")


class CsvSource(FileSource):
    """A CSV file. Its cells have no type of their own; pandas gives them one, see `tuning.data.cells`."""

    title = "CSV"
    suffixes = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")

    def columns(self) -> list[str]:
        with self._opened() as file:
            return self._header(file.peek(HEADER_BYTES))

    def read(self, *, rows: int | None = None, limits: Limits = UNLIMITED) -> pd.DataFrame:
        with self._opened() as file:
            names = self._header(file.peek(HEADER_BYTES))
            limits.check(self.named, Extent(columns=len(names)))
            most = None if limits is UNLIMITED else limits.max_rows + 1
            nrows = most if rows is None else rows
            frame = self._checked(self._parse(file, None, nrows=nrows), names)
        count = len(frame)
        if most is not None and count == rows and self._most_rows() >= most:
            first = [name for name in names if name.strip()][:1]
            count = sum(len(piece) for piece in self.pieces(first, lambda _: first or None))
        limits.check(self.named, Extent(count, len(names), whole=False))
        return with_gaps(frame, self.csv)

    def pieces(self, keys: Sequence[str] = (), choose: ColumnChoice = all_columns) -> Iterator[pa.Table]:
        with self._opened() as file:
            data = file.peek(HEADER_BYTES)
            names = self._header(data)
            check_present(keys, names)
            chosen = choose(names)
            rows = PIECE_BYTES * max(1, data.count(b"\n")) // len(data)
            as_written = {"dtype": str, "keep_default_na": False, "na_values": ()}
            for frame in self._parse(file, chosen, chunksize=min(PIECE_ROWS, max(1000, rows)), **as_written):
                found = self._checked(frame, names if chosen is None else chosen, index=True).fillna("")
                yield written_table(found, keys)

    def head(self, most: int) -> bytes:
        """Return the file's first bytes, decompressed."""
        with self._opened() as file:
            return file.read(most)

    def write(self, stream: BinaryIO, tables: Iterable[pa.Table]) -> None:
        sink, compression = pa.PythonFile(_LeftOpen(stream), "w"), _compression(self.path)
        with sink if compression is None else pa.CompressedOutputStream(sink, compression) as lines:
            for number, table in enumerate(tables):
                if number == 0:
                    lines.write(_lines([pa.array([name], pa.string()) for name in table.column_names]))
                for batch in table.to_batches():
                    lines.write(_lines([_text_of(column) for column in batch.columns]))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[io.BufferedReader]:
        """Yield the file's text, decompressed; `peek` shows its beginning without reading on."""
        with reading_errors(self.path, self.csv.get("encoding", "utf-8")), open_file(self.path) as file:
            compression = _compression(self.path)
            plain = file if compression is None else pa.CompressedInputStream(file, compression)
            yield io.BufferedReader(plain, HEADER_BYTES)

    def _most_rows(self) -> int:
        """Return an upper bound of the number of rows: the ends of lines, also those within quotes."""
        with self._opened() as file:
            pieces = iter(partial(file.read, PIECE_BYTES), b"")
            return 1 + sum(piece.count(b"\n") + piece.count(b"\r") for piece in pieces)

    def _header(self, data: bytes) -> list[str]:
        """Return the column names as they stand in the file; pandas renames doubled and empty ones."""
        csv = self.csv
        if not data:
            raise CustomerError(FileCode.FILE_EMPTY(file_name(self.path)))
        for begin, (kind, way_out) in OTHER_CONTENT.items():
            if data.startswith(begin):
                raise CustomerError(FileCode.FILE_OF_OTHER_KIND(file_name(self.path), kind=kind, way_out=way_out))
        sep = csv.get("sep", ",")
        if "skiprows" in csv or "comment" in csv or len(sep) != 1:
            read = map(str, pd.read_csv(io.BytesIO(data[:HEADER_BYTES]), nrows=0, **self._options).columns)
            names = ["" if name == f"Unnamed: {number}" else name for number, name in enumerate(read)]
            check_names([name for name in names if name], self.named)
            return names
        first = io.TextIOWrapper(io.BytesIO(data), encoding=_without_mark(csv.get("encoding", "utf-8")), newline="")
        lines = csv_module.reader(first, delimiter=sep, quotechar=csv.get("quotechar", '"'))
        names = next((line for line in lines if line), [])
        check_names([name for name in names if name.strip()], self.named)
        row = next((line for line in lines if line), []) if len(names) == 1 else []
        comma = bool(DECIMAL_COMMA.search(sep.join(row)))
        if len(row) > 1 and (options := separator_options(names, decimal_comma=comma)):
            raise CustomerError(FileCode.ONE_COLUMN(file_name(self.path), csv=options))
        return names

    def _parse(
        self, stream: io.BufferedReader, chosen: Sequence[str] | None, **options: object
    ) -> pd.DataFrame | Iterable[pd.DataFrame]:
        """Return a frame, or frames where `options` has a `chunksize`. chosen: the columns wanted, None for all."""
        wanted = None if chosen is None else list(chosen)
        return pd.read_csv(stream, low_memory=False, usecols=wanted, **{**self._options, **options})

    def _checked(self, frame: pd.DataFrame, names: Sequence[str], *, index: bool = False) -> pd.DataFrame:
        """Refuse longer rows than the header; leave out the first column without a name, and others that are empty.

        The first is an index, as pandas writes it. index: keep it, under its own name.
        """
        if not isinstance(frame.index, pd.RangeIndex):
            raise CustomerError(FileCode.WIDER_ROWS())
        if all(name.strip() for name in names):
            return frame
        nameless = [position for position, name in enumerate(names) if not name.strip()]
        for position in nameless:
            if position > 0 and not frame.iloc[:, position].isin(["", np.nan]).all():
                raise CustomerError(FileCode.NAMELESS_COLUMN(number=position + 1, what=self.named))
        kept = [position for position in range(len(names)) if position not in nameless or (index and position == 0)]
        return frame.iloc[:, kept].set_axis([names[position] for position in kept], axis=1)

    @property
    def _options(self) -> dict[str, object]:
        """Keyword arguments of `pandas.read_csv` that take only those cells as missing which always are."""
        own = {name: value for name, value in self.csv.items() if name != LABELS}
        return {"encoding": "utf-8", **own, "keep_default_na": False, "na_values": missing_texts(self.csv)}


FORMAT = CsvSource


class _LeftOpen(io.RawIOBase):
    """A stream that stays open when pyarrow closes what it writes into."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]  # pyarrow gives bytes alone
        return self._stream.write(data)


def _lines(columns: Sequence[pa.Array]) -> pa.Buffer:
    """Return the lines of a CSV. columns: of text."""
    lines = pc.binary_join_element_wise(*map(_quoted, columns), ",", null_handling="replace")
    return pc.binary_join_element_wise(lines, "", "\n").buffers()[2]


def _text_of(column: pa.Array) -> pa.Array:
    """Return values as they are written; NaN is as empty as a missing value."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    return cast_to_text(pa.chunked_array([column])).combine_chunks()


def _quoted(cells: pa.Array) -> pa.Array:
    """Quote the cells that need it."""
    content = bytes(cells.buffers()[2] or b"")  # looked through at a tenth of the cost of a regular expression
    if not any(sign in content for sign in (b",", b'"', b"\r", b"\n")):
        return cells
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(cells, '"', '""'), '"', "")
    return pc.if_else(pc.match_substring_regex(cells, '[,"\r\n]'), quoted, cells)


def csv_text(frame: pd.DataFrame, *, exact: bool = True) -> str:
    """Return a frame as CSV that readers divide into the same rows: pandas quotes "\\n" in a text, but no "\\r".

    exact: False leaves neither a cell nor a column name that is a formula in a spreadsheet.
    """
    texts = {name: values for name, values in frame.items() if values.dtype.kind == "O"}  # text of pandas too
    if not exact:
        safe = {guarded(name): values.map(guarded) if name in texts else values for name, values in frame.items()}
        frame = pd.DataFrame(safe, index=frame.index)
    odd = any(values.astype(str).str.contains("\r", regex=False).any() for values in texts.values())
    return str(frame.to_csv(index=False, quoting=csv_module.QUOTE_NONNUMERIC if odd else csv_module.QUOTE_MINIMAL))


def _compression(path: str) -> str | None:
    """Return how a file is compressed, by its suffix."""
    return COMPRESSED.get(without_query(path).lower().rpartition(".")[2])


def _without_mark(encoding: str) -> str:
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
