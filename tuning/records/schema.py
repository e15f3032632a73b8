"""The record schema: the permanent rows about trials and studies, and their files.

A run's truth is a set of immutable Parquet parts. `TrialRecord` is one row about one trial, `StudyRecord`
one row about one study (written after all of its trials). Reading drops duplicates by key: (study, trial)
and (study). The columns are documented for users in docs/records.md; a test keeps both in step.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from itertools import islice
from operator import attrgetter
from typing import Any

import pyarrow
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tuning.storage.names import mask_in

SCHEMA_VERSION = 1

FINISHED, STOPPED, FAILED = "finished", "stopped", "failed"
TRIAL_STATES = (FINISHED, STOPPED, FAILED)
OK, NO_MODEL, QUARANTINED = "ok", "no_model", "quarantined"
STUDY_STATUSES = (OK, NO_MODEL, QUARANTINED)


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of a trial: its number (from 1), score, wall seconds since the trial began, further figures."""

    step: int
    score: float
    seconds: float = 0.0
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One trial, recorded exactly once. Key: (study, trial)."""

    run: str
    study: str
    customer: str
    trial: int
    attempt: int
    suggested: int
    told: int
    config: Mapping[str, Any]
    family: str
    algorithm: str
    scheduler: str
    metric: str
    mode: str
    state: str
    reason: str
    steps: Sequence[StepRecord]
    best_step: int | None
    score: float | None
    fold_scores: Sequence[float]
    metrics: Mapping[str, float]
    study_seed: int
    seed: int
    started: float
    seconds: float
    fit_seconds: float
    suggest_seconds: float
    worker: str
    versions: str
    error: str | None = None
    lineage: str | None = None
    schedule: str | None = None

    @property
    def key(self) -> tuple[str, int]:
        return (self.study, self.trial)


@dataclass(frozen=True, slots=True)
class StudyRecord:
    """What came of one study, recorded once, after its trials. Key: (study,)."""

    run: str
    study: str
    customer: str
    algorithm: str
    scheduler: str
    study_seed: int
    status: str
    reason: str
    task: str
    metric: str
    mode: str
    family: str | None
    trial: int | None
    best_step: int | None
    config: Mapping[str, Any] | None
    cv_score: float | None
    cv_error: float | None
    test_score: float | None
    default_cv_score: float | None
    default_test_score: float | None
    gain: float | None
    trials: int
    stopped: int
    failed: int
    rows: int
    test_rows: int
    features: int
    started: float
    seconds: float
    fit_seconds: float
    model_path: str | None
    model_sha256: str | None
    worker: str
    versions: str
    error: str | None = None
    notes: str | None = None

    @property
    def key(self) -> tuple[str]:
        return (self.study,)


Record = TrialRecord | StudyRecord


def trial_schema() -> pyarrow.Schema:
    """The Parquet schema of trial parts."""
    metrics = pa.map_(pa.string(), pa.float64())
    step = pa.struct([("step", pa.int32()), ("score", pa.float64()), ("seconds", pa.float64()), ("metrics", metrics)])
    return pa.schema(
        [
            ("run", pa.string()),
            ("study", pa.string()),
            ("customer", pa.string()),
            ("trial", pa.int32()),
            ("attempt", pa.int32()),
            ("suggested", pa.int32()),
            ("told", pa.int32()),
            ("config", pa.string()),
            ("family", pa.string()),
            ("algorithm", pa.string()),
            ("scheduler", pa.string()),
            ("metric", pa.string()),
            ("mode", pa.string()),
            ("state", pa.string()),
            ("reason", pa.string()),
            ("steps", pa.list_(step)),
            ("best_step", pa.int32()),
            ("score", pa.float64()),
            ("fold_scores", pa.list_(pa.float64())),
            ("metrics", metrics),
            ("study_seed", pa.int64()),
            ("seed", pa.int64()),
            ("started", pa.timestamp("us", tz="UTC")),
            ("seconds", pa.float64()),
            ("fit_seconds", pa.float64()),
            ("suggest_seconds", pa.float64()),
            ("worker", pa.string()),
            ("versions", pa.string()),
            ("error", pa.string()),
            ("lineage", pa.string()),
            ("schedule", pa.string()),
        ],
        metadata={"tuning.schema": str(SCHEMA_VERSION), "tuning.kind": "trials"},
    )


def study_schema() -> pyarrow.Schema:
    """The Parquet schema of study parts."""
    text, integer, real = pa.string(), pa.int64(), pa.float64()
    kinds = {
        "study_seed": integer,
        "trial": pa.int32(),
        "best_step": pa.int32(),
        **dict.fromkeys(("trials", "stopped", "failed", "rows", "test_rows", "features"), integer),
        **dict.fromkeys(
            (
                "cv_score",
                "cv_error",
                "test_score",
                "default_cv_score",
                "default_test_score",
                "gain",
                "seconds",
                "fit_seconds",
            ),
            real,
        ),
        "started": pa.timestamp("us", tz="UTC"),
    }
    return pa.schema(
        [(column.name, kinds.get(column.name, text)) for column in fields(StudyRecord)],
        metadata={"tuning.schema": str(SCHEMA_VERSION), "tuning.kind": "studies"},
    )


def encode(records: Sequence[Record]) -> bytes:
    """Records of one kind as one Parquet file with page checksums."""
    trials = isinstance(records[0], TrialRecord)
    schema = trial_schema() if trials else study_schema()
    # Column by column, and only the few that are not plain values value by value: a third of the time.
    columns = dict(zip(schema.names, zip(*map(attrgetter(*schema.names), records), strict=True), strict=True))
    for name, write in _WRITE.items():
        if name in columns:
            columns[name] = tuple(map(write, columns[name]))
    table = pa.Table.from_arrays([pa.array(columns[column.name], type=column.type) for column in schema], schema=schema)
    sink = pa.BufferOutputStream()
    # A part is small: dictionaries and statistics of forty columns take as long as all the rest, to write and to read.
    pq.write_table(
        table, sink, compression="zstd", write_page_checksum=True, use_dictionary=False, write_statistics=False
    )
    return bytes(sink.getvalue())


def decode(data: bytes) -> list[Any]:
    """The records of one part; raises `OSError` or `ValueError` when the bytes are damaged."""
    # Neither threads nor `read_table`'s look for further files: a part is small, and this is half the time.
    table = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True).read(use_threads=False)
    metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    if int(metadata.get("tuning.schema", "0")) > SCHEMA_VERSION:
        raise ValueError(
            f"part has record schema {metadata.get('tuning.schema')}, this program reads up to {SCHEMA_VERSION}: "
            "upgrade tuning-service"
        )
    kind: Any = TrialRecord if metadata.get("tuning.kind") == "trials" else StudyRecord
    there = set(table.schema.names)
    missing = sorted(c.name for c in fields(kind) if c.default is MISSING and c.name not in there)
    if missing:
        raise ValueError(f"part lacks the columns {', '.join(missing)}: it is damaged")
    table = table.set_column(
        table.schema.get_field_index("started"), "started", table.column("started").cast(pa.int64())
    )
    columns: list[Iterable[Any]] = []
    for column in fields(kind):
        if column.name not in there:
            columns.append([column.default] * table.num_rows)
        elif column.name == "steps":
            columns.append(_read_steps(table.column("steps")))
        else:
            values, read = table.column(column.name).to_pylist(), _READ.get(column.name)
            columns.append(values if read is None else map(read, values))
    return [kind(*row) for row in zip(*columns, strict=True)]


def keys_in(data: bytes) -> list[tuple[str, int]]:
    """(study, trial) of each row of a trial part, without reading the rest."""
    table = pq.read_table(pa.BufferReader(data), columns=["study", "trial"])
    return list(zip(table["study"].to_pylist(), table["trial"].to_pylist(), strict=True))


def unique(records: Iterable[Any]) -> list[Any]:
    """One record per key, in the order of keys; of duplicates the first read stays."""
    seen: dict[tuple[Any, ...], Any] = {}
    for record in records:
        seen.setdefault(record.key, record)
    return [seen[key] for key in sorted(seen)]


def canonical(config: Mapping[str, Any]) -> str:
    """A configuration as text: the same configuration is always the same text."""
    return _CANONICAL(config)


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode


def _write_config(config: Mapping[str, Any] | None) -> str | None:
    return None if config is None else canonical(config)


def _write_steps(steps: Sequence[StepRecord]) -> list[dict[str, Any]]:
    return [{"step": s.step, "score": s.score, "seconds": s.seconds, "metrics": list(s.metrics.items())} for s in steps]


def _write_started(seconds: float) -> int:
    return int(seconds * 1_000_000)


def _write_metrics(metrics: Mapping[str, float]) -> list[tuple[str, float]]:
    return list(metrics.items())


def _read_config(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _read_steps(column: pyarrow.ChunkedArray) -> list[list[StepRecord]]:
    """The steps of each trial; column by column, because a row of dictionaries takes three times as long."""
    lists = column.combine_chunks()
    step, score, seconds, metrics = (part.to_pylist() for part in lists.flatten().flatten())
    every = map(StepRecord, step, map(_nan, score), seconds, map(_read_metrics, metrics))
    return [list(islice(every, length or 0)) for length in pc.list_value_length(lists).to_pylist()]


def _read_started(microseconds: int) -> float:
    return microseconds / 1_000_000


def _read_metrics(metrics: Sequence[tuple[str, float]] | None) -> dict[str, float]:
    return dict(metrics or ())


# Columns that are something else in a file than in a record.
def _write_words(value: str | None) -> str | None:
    """What libraries say about a file often has its URI in it, with the secrets there."""
    return mask_in(value) if value and "://" in value else value


_WRITE: dict[str, Callable[[Any], Any]] = {
    "reason": _write_words,
    "error": _write_words,
    "notes": _write_words,
    "config": _write_config,
    "steps": _write_steps,
    "started": _write_started,
    "metrics": _write_metrics,
    "fold_scores": list,
}
_READ: dict[str, Callable[[Any], Any]] = {
    "config": _read_config,
    "started": _read_started,
    "metrics": _read_metrics,
}


def _nan(value: float | None) -> float:
    return math.nan if value is None else value
