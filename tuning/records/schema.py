"""The record schema: the permanent rows about trials and studies, and their files.

A run's truth is a set of immutable Parquet parts. `TrialRecord` is one row about one trial, `StudyRecord`
one row about one study (written after all of its trials). Reading drops duplicates by key: (study, trial)
and (study). The annotations of a record are the columns of its files (`TRIAL_SCHEMA`, `STUDY_SCHEMA`);
docs/records.md documents them for users, and a test keeps both in step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from tuning.storage.names import mask_in
from tuning.wording import encodable

SCHEMA_VERSION = 1

FINISHED, STOPPED, FAILED = "finished", "stopped", "failed"
TRIAL_STATES = (FINISHED, STOPPED, FAILED)
OK, NO_MODEL, QUARANTINED = "ok", "no_model", "quarantined"
STUDY_STATUSES = (OK, NO_MODEL, QUARANTINED)

# What a field is in Python, and in a file where that is something else than text, int64 or float64.
Count = Annotated[int, pa.int32()]
Config = Mapping[str, Any]  # a value per hyperparameter
Json = Annotated[Config, pa.string()]
Metrics = Annotated[Mapping[str, float], pa.map_(pa.string(), pa.float64())]
Moment = Annotated[float, pa.timestamp("us", tz="UTC")]  # in Python seconds since 1970
Scores = Annotated[Sequence[float], pa.list_(pa.float64())]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of a trial: its number (from 1), score, wall seconds since the trial began, further figures."""

    step: Count
    score: float
    seconds: float = 0.0
    metrics: Metrics = field(default_factory=dict)


def _columns(record: type) -> list[pa.Field]:
    hints = get_type_hints(record, include_extras=True)
    return [pa.field(column.name, _column_type(hints[column.name])) for column in fields(record)]


def _column_type(hint: Any) -> pa.DataType:
    """The type of a column, which may always be empty."""
    if type(None) in get_args(hint):
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    if get_origin(hint) is Annotated:
        return get_args(hint)[1]
    return {str: pa.string(), int: pa.int64(), float: pa.float64()}[hint]


Steps = Annotated[Sequence[StepRecord], pa.list_(pa.struct(_columns(StepRecord)))]


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One trial, recorded exactly once. Key: (study, trial)."""

    run: str
    study: str
    customer: str
    trial: Count
    attempt: Count
    suggested: Count
    told: Count
    config: Json
    family: str
    algorithm: str
    scheduler: str
    metric: str
    mode: str
    state: str
    reason: str
    steps: Steps
    best_step: Count | None
    score: float | None
    fold_scores: Scores
    metrics: Metrics
    study_seed: int
    seed: int
    started: Moment
    seconds: float
    fit_seconds: float
    suggest_seconds: float
    worker: str
    versions: str
    error: str | None = None
    lineage: str | None = None
    schedule: str | None = None
    spent_steps: int | None = None
    spent_seconds: float | None = None

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
    trial: Count | None
    best_step: Count | None
    config: Json | None
    cv_score: float | None
    cv_error: float | None
    test_score: float | None
    baseline_cv_score: float | None
    baseline_test_score: float | None
    gain: float | None
    trials: int
    stopped: int
    failed: int
    rows: int
    test_rows: int
    features: int
    started: Moment
    seconds: float
    fit_seconds: float
    model_path: str | None
    model_sha256: str | None
    worker: str
    versions: str
    error: str | None = None
    notes: str | None = None
    positive: str | None = None
    final_fit: str | None = None
    baseline: str | None = None
    group: str | None = None
    ensemble: str | None = None
    ensemble_score: float | None = None
    model_bytes: int | None = None
    constant_cv_score: float | None = None
    constant_test_score: float | None = None
    gain_over_constant: float | None = None

    @property
    def key(self) -> tuple[str]:
        return (self.study,)


Record = TrialRecord | StudyRecord

TRIAL_SCHEMA, STUDY_SCHEMA = (
    pa.schema(_columns(kind), metadata={"tuning.schema": str(SCHEMA_VERSION), "tuning.kind": name})
    for kind, name in ((TrialRecord, "trials"), (StudyRecord, "studies"))
)


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


def canonical(config: Config) -> str:
    """A configuration as text: the same configuration is always the same text."""
    return _CANONICAL(config)


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode


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


# Columns that are something else in a file than in a record.
_WRITE: dict[str, Callable[..., object]] = {
    "reason": _write_words,
    "error": _write_words,
    "notes": _write_words,
    "config": _write_config,
    "steps": _write_steps,
    "started": _write_started,
    "metrics": _write_metrics,
    "fold_scores": list,
}
