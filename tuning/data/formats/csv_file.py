"""CSV, also compressed, read by pandas with whatever options of `pandas.read_csv` the definition names."""

from __future__ import annotations

import contextlib
import csv as csv_module
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import BinaryIO, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import guarded, separator_options
from tuning.data.cells import LABELS, marked, missing_texts, with_gaps, written_table
from tuning.data.column_types import cast_to_text
from tuning.data.file_access import SharedReader, file_name, located, open_file, reading_errors
from tuning.data.keys import key_table
from tuning.data.table_source import (
    PIECE_ROWS,
    ColumnChoice,
    FileSource,
    Piece,
    TableWriter,
    all_columns,
    check_names,
    check_present,
)
from tuning.definition.customer_limits import UNLIMITED, Extent, Limits
from tuning.errors import CustomerError
from tuning.notes import FileCode
from tuning.storage.names import without_query

Stream: TypeAlias = io.BytesIO | pa.NativeFile

COMPRESSED = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
# How files begin that are no CSV, whatever they are called: what they are, and what to do.
OTHER_CONTENT = {
    b"\x1f\x8b\x08": ("gzip", "let its name end in .csv.gz"),
    b"PK\x03\x04": ("a ZIP archive or a workbook", "unpack it, or save it as CSV"),
    b"PAR1": ("Parquet", "let its name end in .parquet"),
    b"BZh91AY&SY": ("bzip2", "let its name end in .csv.bz2"),
    b"\x28\xb5\x2f\xfd": ("zstd", "let its name end in .csv.zst"),
}
AT_ONCE = 1 << 26  # a CSV up to this size is read in one piece, which is a third faster than as a stream
PIECE_BYTES = 1 << 24  # of a CSV read piece by piece; as text its cells take ten times as much
HEADER_BYTES = 1 << 20
DECIMAL_COMMA = re.compile(r"(^|[;|\t])-?\d+,\d+([;|\t]|$)")


class CsvSource(FileSource):
    """A CSV file. Its cells have no type of their own; pandas gives them one, see `tuning.data.cells`."""

    title = "CSV"
    suffixes = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")

    def columns(self) -> list[str]:
        with self._errors(), open_file(self.path) as file:
            return self._header(self._beginning(file, HEADER_BYTES)[0])

    def read(
        self,
        *,
        text: Sequence[str] = (),
        rows: int | None = None,
        limits: Limits = UNLIMITED,
    ) -> pd.DataFrame:
        with self._errors(), open_file(self.path) as file:
            data, whole = self._beginning(file)
            names = self._header(data)
            limits.check(self.named, Extent(columns=len(names)))
            most = None if limits is UNLIMITED else limits.max_rows + 1
            nrows = most if rows is None else rows
            stream = io.BytesIO(data) if whole else self._decompressed(file)
            frame = self._checked(self._parse(stream, None, nrows=nrows, **self._as_text(names, text)), names)
            count = len(frame)
            if most is not None and count == rows and self._most_rows(file) >= most:
                first = [name for name in names if name.strip()][:1]
                count = sum(len(piece.rows) for piece in self.pieces(first, lambda _: first or None))
        limits.check(self.named, Extent(count, len(names), whole=False))
        return with_gaps(frame, self.csv, text)

    def pieces(self, keys: Sequence[str] = (), choose: ColumnChoice = all_columns) -> Iterator[Piece]:
        return self._pieces(keys, choose, lambda frame: written_table(frame, keys), dtype=str)

    def pieces_as_written(self, keys: Sequence[str] = ()) -> Iterator[tuple[Piece, pa.Table]]:
        missing = pa.array(missing_texts(self.csv))

        def came(frame: pd.DataFrame) -> pa.Table:
            return written_table(frame.fillna(""), list(frame.columns))

        as_written = {"dtype": str, "keep_default_na": False, "na_values": ()}
        for piece in self._pieces(keys, all_columns, came, index=True, **as_written):
            cells = {
                name: column if name in keys else pc.if_else(pc.is_in(column, missing), None, column)
                for name, column in zip(piece.rows.column_names, piece.rows.columns, strict=True)
                if name.strip()
            }
            yield Piece(marked(pa.table(cells), set(cells).difference(keys)), piece.keys), piece.rows

    def _pieces(
        self,
        keys: Sequence[str],
        choose: ColumnChoice,
        as_table: Callable[[pd.DataFrame], pa.Table],
        *,
        index: bool = False,
        **types: object,
    ) -> Iterator[Piece]:
        with self._errors(), open_file(self.path) as file:
            data, whole = self._beginning(file)
            names = self._header(data)
            check_present(keys, names)
            chosen = choose(names)
            rows = PIECE_BYTES * max(1, data.count(b"\n")) // len(data)
            stream, data = io.BytesIO(data) if whole else self._decompressed(file), b""
            options = {**self._as_text(names, keys), **types, "chunksize": min(PIECE_ROWS, max(1000, rows))}
            for frame in self._parse(stream, chosen, **options):
                found = self._checked(frame, names if chosen is None else chosen, index=index)
                yield Piece(as_table(found), key_table(found, keys))

    def head(self, most: int) -> bytes:
        """The file's first bytes, decompressed."""
        with self._errors(), open_file(self.path) as file:
            return self._beginning(file, most)[0]

    @classmethod
    def write(cls, frame: pd.DataFrame, path: str) -> None:
        filesystem, inner = located(path)
        with filesystem.open_output_stream(inner, compression=_compression(path)) as stream:
            stream.write(csv_text(frame).encode("utf-8"))

    def writer(self, stream: BinaryIO) -> TableWriter:
        sink = pa.PythonFile(_LeftOpen(stream), "w")
        compression = _compression(self.path)
        return _CsvWriter(sink if compression is None else pa.CompressedOutputStream(sink, compression))

    def _errors(self) -> contextlib.AbstractContextManager[None]:
        return reading_errors(self.path, self.csv.get("encoding", "utf-8"))

    def _decompressed(self, file: pa.NativeFile) -> pa.NativeFile:
        """The open file's bytes from their beginning, decompressed as its suffix says."""
        file.seek(0)
        compression = _compression(self.path)
        if compression is None:
            return file
        shared = pa.PythonFile(SharedReader(file), "r")  # Arrow closes what it decompresses
        return pa.CompressedInputStream(shared, compression)

    def _beginning(self, file: pa.NativeFile, most: int = AT_ONCE) -> tuple[bytes, bool]:
        """The beginning of the file, decompressed, and whether that is all of it."""
        data = self._decompressed(file).read(most + 1)
        return data, len(data) <= most

    def _most_rows(self, file: pa.NativeFile) -> int:
        """At least as many as the file has: its ends of lines, also those within quotes."""
        pieces = iter(partial(self._decompressed(file).read, PIECE_BYTES), b"")
        return 1 + sum(piece.count(b"\n") + piece.count(b"\r") for piece in pieces)

    def _header(self, data: bytes) -> list[str]:
        """The column names as they stand in the file; pandas renames doubled and empty ones."""
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
        self, stream: Stream, chosen: Sequence[str] | None, **options: object
    ) -> pd.DataFrame | Iterable[pd.DataFrame]:
        """A frame, or frames where `options` has a `chunksize`. chosen: the columns wanted, None for all."""
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

    def _as_text(self, names: Sequence[str], text: Sequence[str]) -> dict[str, object]:
        """Options under which some columns stay as they are written: 007 is not 7, and nothing is missing."""
        others = {name: missing_texts(self.csv) for name in names if name not in text}
        return {"dtype": dict.fromkeys(set(text) & set(names), str), "na_values": others} if text else {}


FORMAT = CsvSource


class _CsvWriter:
    """Writes tables as CSV."""

    def __init__(self, sink: pa.NativeFile) -> None:
        self._sink = sink
        self._begun = False

    def write_table(self, table: pa.Table) -> None:
        if not self._begun:
            self._write([pa.array([name], pa.string()) for name in table.column_names])
            self._begun = True
        for batch in table.to_batches():
            self._write([_text_of(column) for column in batch.columns])

    def _write(self, columns: Sequence[pa.Array]) -> None:
        lines = pc.binary_join_element_wise(*map(_quoted, columns), ",", null_handling="replace")
        self._sink.write(pc.binary_join_element_wise(lines, "", "\n").buffers()[2])

    def close(self) -> None:
        self._sink.close()


class _LeftOpen(io.RawIOBase):
    """A stream that stays open when pyarrow closes what it writes into."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]  # pyarrow gives bytes alone
        return self._stream.write(data)


def _text_of(column: pa.Array) -> pa.Array:
    """Values as they are written; NaN is as empty as what is missing."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    return cast_to_text(pa.chunked_array([column])).combine_chunks()


def _quoted(cells: pa.Array) -> pa.Array:
    """Cells with quotes around those alone that need them."""
    content = bytes(cells.buffers()[2] or b"")  # looked through at a tenth of the cost of a regular expression
    if not any(sign in content for sign in (b",", b'"', b"\r", b"\n")):
        return cells
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(cells, '"', '""'), '"', "")
    return pc.if_else(pc.match_substring_regex(cells, '[,"\r\n]'), quoted, cells)


def csv_text(frame: pd.DataFrame) -> str:
    """A frame as CSV, one that a reader divides into the same rows: pandas quotes "\\n" in a text, but no "\\r"."""
    texts = (values for _, values in frame.items() if values.dtype.kind == "O")  # text of pandas too
    odd = any(values.astype(str).str.contains("\r", regex=False).any() for values in texts)
    return str(frame.to_csv(index=False, quoting=csv_module.QUOTE_NONNUMERIC if odd else csv_module.QUOTE_MINIMAL))


def guarded_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of which no cell is a formula in a spreadsheet, nor a column's name."""
    columns = {guarded(name): _guarded(values) for name, values in frame.items()}
    return pd.DataFrame(columns, index=frame.index)


def _guarded(values: pd.Series) -> pd.Series:
    return values.map(guarded) if values.dtype.kind == "O" else values


def _compression(path: str) -> str | None:
    """How a file is compressed, by its suffix."""
    return COMPRESSED.get(without_query(path).lower().rpartition(".")[2])


def _without_mark(encoding: str) -> str:
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
