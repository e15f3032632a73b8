"""Records as tables: parts are read in columns, and rows become objects only where somebody asks for these.

A run of a million customers has millions of records. As columns of Arrow they take a tenth of the memory and of the
time that an object per record takes, and are counted, filtered and sorted as they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from operator import attrgetter
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tuning.basics.wording import encodable
from tuning.notes import Note, NoteCode, from_row
from tuning.records.figures import KIND, STUDY_SCHEMA, TRIAL_SCHEMA
from tuning.records.schema import Config, Record, StepRecord, StudyRecord, TrialRecord, canonical
from tuning.storage.names import mask_in

R = TypeVar("R", TrialRecord, StudyRecord)
#: The columns that tell rows apart, by the kind of a part.
KEYS = {"trials": ["study", "trial"], "studies": ["study"], "pool": ["study", "trial"]}
PIECE = 1 << 16  # rows that are put together when many parts are read
_KINDS: dict[str, tuple[type[Record], pa.Schema]] = {
    "trials": (TrialRecord, TRIAL_SCHEMA),
    "studies": (StudyRecord, STUDY_SCHEMA),
    "pool": (TrialRecord, TRIAL_SCHEMA),
}


def encode(records: Sequence[Record]) -> bytes:
    """Records of one kind as one Parquet file with page checksums."""
    schema = TRIAL_SCHEMA if isinstance(records[0], TrialRecord) else STUDY_SCHEMA
    # Column by column, and only the few that are not plain values value by value: a third of the time.
    columns = dict(zip(schema.names, zip(*map(attrgetter(*schema.names), records), strict=True), strict=True))
    for name, write in _WRITE.items():
        if name in columns:
            columns[name] = tuple(map(write, columns[name]))
    return encode_table(
        pa.Table.from_arrays([pa.array(columns[column.name], type=column.type) for column in schema], schema=schema)
    )


def encode_table(table: pa.Table) -> bytes:
    """The same of rows that are columns already."""
    sink = pa.BufferOutputStream()
    # A part is small: dictionaries and statistics of forty columns take as long as all the rest, to write and to read.
    pq.write_table(
        table, sink, compression="zstd", write_page_checksum=True, use_dictionary=False, write_statistics=False
    )
    return bytes(sink.getvalue())


def decode_table(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of one part in today's columns; `OSError` or `ValueError` when the bytes are damaged.

    columns: those that are wanted, None for all.
    """
    # Neither threads nor `read_table`'s look for further files: a part is small, and this is half the time.
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    schema = _KINDS[(file.schema_arrow.metadata or {}).get(KIND, b"studies").decode()][1]
    wanted = [schema.field(name) for name in (schema.names if columns is None else columns)]
    missing = sorted({column.name for column in wanted} - {*file.schema_arrow.names})
    if missing:
        raise ValueError(f"part lacks the columns {', '.join(missing)}: it is damaged")
    table = file.read(columns=[column.name for column in wanted], use_threads=False)
    return pa.Table.from_arrays(
        [table.column(column.name) for column in wanted], schema=pa.schema(wanted, metadata=schema.metadata)
    )


def no_rows(kind: str, columns: Sequence[str] | None = None) -> pa.Table:
    """A table of a kind without rows."""
    schema = _KINDS[kind][1]
    wanted = [schema.field(name) for name in (schema.names if columns is None else columns)]
    return pa.schema(wanted, metadata=schema.metadata).empty_table()


def joined(tables: Iterable[pa.Table], none: pa.Table) -> pa.Table:
    """The rows of many tables, each column in one piece.

    They are put together by and by: thousands of small pieces take several times the memory of what is in them. none:
    the same columns without rows.
    """
    columns: list[pa.ChunkedArray] = none.columns
    few, rows = [none], 0
    for table in tables:
        few.append(table)
        rows += len(table)
        if rows > PIECE:
            piece = pa.concat_tables(few).combine_chunks()
            columns = [
                pa.chunked_array([*a.chunks, *b.chunks], a.type) for a, b in zip(columns, piece.columns, strict=True)
            ]
            few, rows, piece = [], 0, none
    piece = pa.concat_tables([none, *few])
    few.clear()
    for number, last in enumerate(piece.columns):  # a column's pieces are let go before the next one is made
        before, columns[number] = columns[number], none.column(number)
        columns[number] = pa.chunked_array([*before.chunks, *last.chunks], last.type).combine_chunks()
    return pa.Table.from_arrays(columns, schema=none.schema)


def distinct(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """One row per key, in the order of the rows; of several the first stays."""
    if len(keys) == 1 and len(pc.unique(table[keys[0]])) == len(table):
        return table
    place = pa.array(np.arange(len(table)))
    first = table.select(keys).append_column("place", place).group_by(keys, use_threads=False)
    found = first.aggregate([("place", "min")])["place_min"]
    return table if len(found) == len(table) else table.take(found.combine_chunks().sort())


def has_note(notes: pa.ChunkedArray, *codes: NoteCode) -> pa.Array:
    """Return whether each row of a column of notes has one with any of these codes."""
    notes, wanted = notes.combine_chunks(), pa.array([code.id for code in codes], pa.string())
    rows = pc.list_parent_indices(notes).filter(pc.is_in(pc.struct_field(pc.list_flatten(notes), "code"), wanted))
    found = np.zeros(len(notes), dtype=bool)
    found[rows.to_numpy()] = True
    return pa.array(found)


def records_of(table: pa.Table, kind: type[R]) -> list[R]:
    """The rows of a table with all columns of a kind, as records of this kind."""
    columns: list[Iterable[object]] = []
    names = [each.name for each in fields(kind)]
    for name in names:
        values = table.column(name)
        if name == "started":
            values = values.cast(pa.int64())
        if name == "steps":
            columns.append(_read_steps(values))
        else:
            read = _READ.get(name)
            columns.append(values.to_pylist() if read is None else map(read, values.to_pylist()))
    return [kind(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def decode(data: bytes) -> list[TrialRecord] | list[StudyRecord]:
    """The records of one part; raises `OSError` or `ValueError` when the bytes are damaged."""
    table = decode_table(data)
    if table.schema.metadata[KIND] == b"trials":
        return records_of(table, TrialRecord)
    return records_of(table, StudyRecord)


def _write_config(config: Config | None) -> str | None:
    return None if config is None else canonical(config)


def _write_steps(steps: Sequence[StepRecord]) -> list[dict[str, object]]:
    return [{"step": s.step, "score": s.score, "seconds": s.seconds, "metrics": list(s.metrics.items())} for s in steps]


def _write_started(seconds: float) -> int:
    return int(seconds * 1_000_000)


def _write_metrics(metrics: Mapping[str, float]) -> list[tuple[str, float]]:
    return list(metrics.items())


def _write_words(value: str | None) -> str | None:
    """What libraries say about a file often has its URI in it, with the secrets there."""
    return encodable(mask_in(value) if "://" in value else value) if value else value


def _write_note(note: Note | None) -> dict[str, str | None] | None:
    return None if note is None else {name: _write_words(text) for name, text in note.to_row().items()}


def _write_notes(notes: Sequence[Note]) -> list[dict[str, str | None] | None]:
    return [_write_note(note) for note in notes]


# Columns that are something else in a file than in a record.
_WRITE: dict[str, Callable[..., object]] = {
    "reason": _write_note,
    "error": _write_words,
    "notes": _write_notes,
    "config": _write_config,
    "steps": _write_steps,
    "started": _write_started,
    "metrics": _write_metrics,
    "fold_scores": list,
}


def _read_config(text: str | None) -> Config | None:
    return None if text is None else dict(json.loads(text))


def _read_steps(column: pa.ChunkedArray) -> list[list[StepRecord]]:
    """The steps of each trial; column by column, because a row of dictionaries takes three times as long."""
    lists = column.combine_chunks()
    step, score, seconds, metrics = (part.to_pylist() for part in lists.flatten().flatten())
    every = map(StepRecord, step, map(_nan, score), seconds, map(_read_metrics, metrics))
    return [list(islice(every, length or 0)) for length in pc.list_value_length(lists).to_pylist()]


def _read_started(microseconds: int) -> float:
    return microseconds / 1_000_000


def _read_metrics(metrics: Sequence[tuple[str, float]] | None) -> Mapping[str, float]:
    return dict(metrics or ())


def _read_note(row: Mapping[str, str] | None) -> Note | None:
    return None if row is None else from_row(row)


def _read_notes(rows: Sequence[Mapping[str, str]] | None) -> tuple[Note, ...]:
    return tuple(map(from_row, rows or ()))


def _nan(value: float | None) -> float:
    return math.nan if value is None else value


# Columns that are something else in a record than in a file.
_READ: dict[str, Callable[..., object]] = {
    "config": _read_config,
    "started": _read_started,
    "metrics": _read_metrics,
    "reason": _read_note,
    "notes": _read_notes,
}
