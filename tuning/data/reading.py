"""One file of rows as a frame: CSV (also compressed) or Parquet, on any filesystem; an error says what is wrong.

CSV goes through pandas, with whatever options of `pandas.read_csv` the definition names; Parquet through pyarrow.
"""

from __future__ import annotations

import contextlib
import csv as csv_module
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from tuning.data.as_written import plain_numbers
from tuning.data.column_types import check_refusal, to_frame
from tuning.errors import CustomerError, StorageError
from tuning.storage.backend import open_filesystem
from tuning.storage.names import is_uri
from tuning.wording import name_list

CsvOptions: TypeAlias = Mapping[str, Any]  # of `pandas.read_csv`
Source: TypeAlias = io.BytesIO | pa.NativeFile

CSV_SUFFIXES = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")
PARQUET_SUFFIXES = (".parquet", ".pq")
COMPRESSED = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
SUFFIXES = CSV_SUFFIXES + PARQUET_SUFFIXES
# What pandas.read_csv takes as missing, as its documentation lists it; needed to change that for single columns.
MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
NOT_UTF_8 = re.compile(r"\\udc[89a-f]")  # what `readable` makes of a byte of a file's name
AT_ONCE = 1 << 26  # a CSV up to this size is read in one piece, which is a third faster than as a stream
CHUNK_BYTES = 1 << 24  # of CSV per chunk of a table read piece by piece; as text its cells take ten times as much
STREAM_BYTES = 1 << 26  # of Parquet read ahead, over all columns, where a file is read piece by piece
HEADER_BYTES = 1 << 20


def without_query(path: str) -> str:
    """A path without the options that a URI may end in (`?endpoint_override=…&scheme=http`)."""
    return re.sub(r"\?\w+=[^/]*(//[^/]*)?$", "", path) if is_uri(path) else path


def located(path: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """The pyarrow filesystem of a path or URI, kept for the next file of the same place, and the path on it.

    Names stand for themselves: `%` in a URI is a percent sign, as it comes from listing a bucket.
    """
    if not is_uri(path):
        return _filesystem("")[0], os.path.abspath(os.path.expanduser(path))
    address = without_query(path)
    scheme, _, rest = address.partition("://")
    authority, _, below = rest.partition("/")
    filesystem, root = _filesystem(f"{scheme}://{authority}{'/' if not authority else ''}{path[len(address) :]}")
    return filesystem, f"{root.rstrip('/')}/{below}"


@lru_cache(maxsize=16)
def _filesystem(root: str) -> tuple[pyarrow.fs.FileSystem, str]:
    return open_filesystem(root)


def is_parquet(path: str) -> bool:
    """True for a Parquet file's name; every other name is taken as CSV."""
    return without_query(path).lower().endswith(PARQUET_SUFFIXES)


def file_name(path: str) -> str:
    """A file's own name, for messages."""
    return os.path.basename(without_query(path))


def read_frame(
    path: str,
    csv: CsvOptions,
    *,
    columns: Sequence[str] | None = None,
    text: Sequence[str] = (),
    as_written: bool = False,
    max_rows: int | None = None,
    max_columns: int | None = None,
    rows: int | None = None,
) -> pd.DataFrame:
    """A file as a frame; `CustomerError` says what is wrong with it.

    csv: options of `pandas.read_csv`. columns: only these. text: columns of a CSV kept as they are written, whatever
    they look like. as_written: the other ones of a CSV are text too, or missing. max_rows, max_columns: more is an
    error, `max_rows` of the whole file. rows: stop after as many.
    """
    with reading_errors(path, csv):
        if is_parquet(path):
            return _read_parquet(path, columns, max_rows, max_columns, rows)
        data, whole = _content(path)
        names = _header(data, csv, max_columns, file_name(path))
        limit = rows if rows is not None else None if max_rows is None else max_rows + 1
        with _source(path, data, whole) as source:
            frame = _parse(source, csv, names, columns, text, as_written, nrows=limit)
        if rows is not None and max_rows is not None and len(frame) == rows and _lines(path) > max_rows:
            named = next((name for name in names if name.strip()), None)
            read_frame(path, csv, columns=[named] if named else None, as_written=True, max_rows=max_rows)
    if max_rows is not None and len(frame) > max_rows:
        raise CustomerError(f"the file {file_name(path)} has more than limits.max_rows: {max_rows} rows.")
    return frame


def read_pieces(path: str, csv: CsvOptions, *, text: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
    """A file piece by piece, as `read_frame` with `as_written` gives it."""
    if not is_parquet(path):
        yield from read_chunks(path, csv, text=text)
        return
    with reading_errors(path, csv), open_parquet(path, streamed=True) as file:
        for batch in file.iter_batches():
            yield to_frame(pa.Table.from_batches([batch]))


def read_chunks(
    path: str, csv: CsvOptions, *, columns: Sequence[str] | None = None, text: Sequence[str] = ()
) -> Iterator[pd.DataFrame]:
    """A CSV file piece by piece, each about 16 MiB; as `read_frame` with `as_written`."""
    with reading_errors(path, csv):
        data, whole = _content(path)
        names = _header(data, csv, None, file_name(path))
        lines = max(1, data.count(b"\n"))
        per_chunk = max(1000, CHUNK_BYTES * lines // len(data))
        kept, data = data if whole else b"", b""
        with _source(path, kept, whole) as source:
            yield from _parse(source, csv, names, columns, text, True, chunksize=per_chunk)


def read_schema(path: str, csv: CsvOptions) -> list[str]:
    """The names of a file's columns."""
    with reading_errors(path, csv):
        if is_parquet(path):
            with open_parquet(path) as file:
                return [str(name) for name in file.schema_arrow.names]
        data, _ = _content(path, HEADER_BYTES)
        return _header(data, csv, None, file_name(path))


def read_head(path: str, most: int) -> bytes:
    """A file's first bytes, decompressed; `CustomerError` says why they cannot be read."""
    with reading_errors(path, {}):
        return _content(path, most)[0]


@contextlib.contextmanager
def open_parquet(path: str, *, streamed: bool = False) -> Iterator[pq.ParquetFile]:
    """The Parquet file of a path or URI; page checksums are verified where the file has them, as a run's own have.

    streamed: in memory is only what is being read. Without, pyarrow reads ahead and keeps the whole file's bytes.
    """
    filesystem, inner = located(path)
    _check_kind(path, inner)
    with filesystem.open_input_file(inner) as stream:
        if not streamed:
            yield pq.ParquetFile(stream, page_checksum_verification=True)
            return
        metadata = pq.read_metadata(stream)
        size = min(STREAM_BYTES // 4, max(1 << 14, STREAM_BYTES // max(1, metadata.num_columns)))
        yield pq.ParquetFile(
            stream, metadata=metadata, pre_buffer=False, buffer_size=size, page_checksum_verification=True
        )


@contextlib.contextmanager
def reading_errors(path: str, csv: CsvOptions) -> Iterator[None]:
    """Around reading a file: what can be wrong with it becomes a `CustomerError`."""
    shown = file_name(path)
    try:
        yield
    except CustomerError:
        raise
    except StorageError as error:
        raise CustomerError(str(error)) from error
    except FileNotFoundError as error:
        hint = " Its name is not UTF-8; rename it." if NOT_UTF_8.search(shown) else ""
        raise CustomerError(f"the file {shown} is not there.{hint}") from error
    except PermissionError as error:
        raise CustomerError(f"the file {shown} may not be read: permission denied.") from error
    except IsADirectoryError as error:
        raise CustomerError(f"{shown} is a folder, a file is expected.") from error
    except UnicodeError as error:
        where = f" ({error.reason} at byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
        raise CustomerError(
            f"the file {shown} is not {csv.get('encoding', 'utf-8')} text{where}; set `encoding`."
        ) from error
    except (ValueError, OSError, EOFError, csv_module.Error, pa.ArrowException) as error:
        text = " ".join(str(error).split())[:200].removeprefix("Error tokenizing data. C error: ").rstrip(".")
        if type(error).__name__ == "EmptyDataError":
            text = "it is empty"
        raise CustomerError(f"the file {shown} cannot be read: {text}.") from error


def _content(path: str, most: int = AT_ONCE) -> tuple[bytes, bool]:
    """The beginning of a file, decompressed, and whether that is all of it."""
    with _open(path) as stream:
        data = stream.read(most + 1)
    return data, len(data) <= most


def _lines(path: str) -> int:
    """At least as many as a CSV has rows: its ends of lines, also those within quotes."""
    with _open(path) as stream:
        pieces = iter(partial(stream.read, CHUNK_BYTES), b"")
        return 1 + sum(piece.count(b"\n") + piece.count(b"\r") for piece in pieces)


def _open(path: str) -> pa.NativeFile:
    """A file's bytes, decompressed as its suffix says."""
    filesystem, inner = located(path)
    _check_kind(path, inner)
    return filesystem.open_input_stream(inner, compression=compression(path))


def _check_kind(path: str, inner: str) -> None:
    """`CustomerError` for a pipe or a device, which nobody may ever write to."""
    if not is_uri(path) and os.path.exists(inner) and not (os.path.isfile(inner) or os.path.isdir(inner)):
        raise CustomerError(f"{file_name(path)} is a pipe or a device, a file is expected.")


def compression(path: str) -> str | None:
    """How a file is compressed, by its suffix."""
    return COMPRESSED.get(without_query(path).lower().rpartition(".")[2])


@contextlib.contextmanager
def _source(path: str, data: bytes, whole: bool) -> Iterator[Source]:
    if whole:
        yield io.BytesIO(data)
        return
    with _open(path) as stream:
        yield stream


def _header(data: bytes, csv: CsvOptions, max_columns: int | None, shown: str) -> list[str]:
    """The column names as they stand in the file; pandas renames doubled and empty ones."""
    if not data:
        raise CustomerError(f"the file {shown} is empty.")
    sep = csv.get("sep", ",")
    if "skiprows" in csv or "comment" in csv or len(sep) != 1:
        names = list(map(str, pd.read_csv(io.BytesIO(data[:HEADER_BYTES]), nrows=0, **csv).columns))
        check_names(names, f"the file {shown}", max_columns)
        return names
    first = io.TextIOWrapper(io.BytesIO(data), encoding=_without_mark(csv.get("encoding", "utf-8")), newline="")
    lines = csv_module.reader(first, delimiter=sep, quotechar=csv.get("quotechar", '"'))
    names = next((line for line in lines if line), [])
    check_names([name for name in names if name.strip()], f"the file {shown}", max_columns)
    return names


def _without_mark(encoding: str) -> str:
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def check_names(names: Sequence[str], what: str, max_columns: int | None) -> None:
    """Refuse too many, doubled and empty column names. what: the file or frame, for the message."""
    if max_columns is not None and len(names) > max_columns:
        raise CustomerError(f"{what} has {len(names)} columns, more than limits.max_columns: {max_columns}.")
    if len(set(names)) < len(names):
        doubled = Counter(names).most_common(1)[0][0]
        raise CustomerError(f"{what} has the column {doubled!r} twice; rename one.")
    if any(not name.strip() for name in names):
        number = next(number for number, name in enumerate(names, start=1) if not name.strip())
        raise CustomerError(f"column {number} of {what} has no name; give it one.")


def _parse(
    source: Source,
    csv: CsvOptions,
    names: Sequence[str],
    columns: Sequence[str] | None,
    text: Sequence[str],
    as_written: bool,
    **options: Any,
) -> Any:
    if columns is not None:
        absent = [name for name in columns if name not in names]
        if absent:
            raise CustomerError(f"there is no column {absent[0]!r}; there are {name_list(names)}.")
    answer = pd.read_csv(
        source,
        low_memory=False,
        usecols=None if columns is None else list(columns),
        **{"encoding": "utf-8", **csv, **_as_text(names, text, as_written, csv.get("na_values", ())), **options},
    )
    if isinstance(answer, pd.DataFrame):
        whole = _named(answer, names, columns is None)
        return whole if as_written else _in_plain_numbers(whole, csv)
    return (_named(chunk, names, columns is None) for chunk in answer)


def _as_text(names: Sequence[str], text: Sequence[str], as_written: bool, missing: Sequence[str]) -> CsvOptions:
    """Options of pandas under which some columns stay as they are written: 007 is not 7, NA is not missing.

    as_written: the others do too, but for what means a missing value.
    """
    wanted = [name for name in text if name in names]
    options: CsvOptions = {"dtype": str} if as_written else {}
    if not wanted:
        return options
    others = {name: [*MISSING, *missing] for name in names if name not in wanted}
    return {"dtype": dict.fromkeys(wanted, str), **options, "keep_default_na": False, "na_values": others}


def _in_plain_numbers(frame: pd.DataFrame, csv: CsvOptions) -> pd.DataFrame:
    """The frame with the numbers in columns of text in the usual notation, where nearly all are numbers."""
    if csv.get("decimal", ".") == "." and csv.get("thousands") is None:
        return frame
    texts = [name for name in frame.columns if isinstance(frame[name].dtype, pd.StringDtype)]
    columns = {name: pa.chunked_array([pa.array(frame[name], pa.string(), from_pandas=True)]) for name in texts}
    return frame.assign(**{name: plain_numbers(column, csv).to_pandas() for name, column in columns.items()})


def _named(frame: pd.DataFrame, names: Sequence[str], all_columns: bool) -> pd.DataFrame:
    """Refuses rows longer than the header; leaves out columns without a name that hold nothing or number the rows."""
    if not isinstance(frame.index, pd.RangeIndex):
        raise CustomerError("its rows have more fields than its header; quote fields that hold the separator.")
    if not all_columns or all(name.strip() for name in names):
        return frame
    nameless = [position for position, name in enumerate(names) if not name.strip()]
    for position in nameless:
        values = frame.iloc[:, position]
        numbers = pd.to_numeric(values, errors="coerce")
        numbered = position == 0 and numbers.notna().all() and (numbers.diff().dropna() == 1).all()
        if not (numbered or values.isna().all()):
            raise CustomerError(f"column {position + 1} has no name but values; give it a name.")
    return frame.iloc[:, [position for position in range(len(names)) if position not in nameless]]


def _read_parquet(
    path: str, columns: Sequence[str] | None, max_rows: int | None, max_columns: int | None, rows: int | None
) -> pd.DataFrame:
    shown = file_name(path)
    with open_parquet(path, streamed=rows is not None) as file:
        check_refusal(file.schema_arrow)
        count = file.metadata.num_rows
        if max_rows is not None and count > max_rows:
            raise CustomerError(f"the file {shown} has {count} rows, more than limits.max_rows: {max_rows}.")
        names = [str(name) for name in file.schema_arrow.names]
        check_names(names, f"the file {shown}", max_columns)
        absent = [name for name in columns or () if name not in names]
        if absent:
            raise CustomerError(f"there is no column {absent[0]!r}; there are {name_list(names)}.")
        chosen = None if columns is None else list(columns)
        if rows is None or rows >= count:
            table = file.read(columns=chosen, use_threads=False)
        else:
            table = first_rows(file, rows, chosen)
    return to_frame(table)


def first_rows(file: pq.ParquetFile, rows: int, columns: list[str] | None) -> pa.Table:
    """The first rows of a `ParquetFile`, reading no more row groups than needed."""
    batches, found = [], 0
    for batch in file.iter_batches(batch_size=max(1, min(rows, 65_536)), columns=columns):
        batches.append(batch)
        found += batch.num_rows
        if found >= rows:
            break
    return pa.Table.from_batches(batches).slice(0, rows) if batches else file.read(columns=columns)
