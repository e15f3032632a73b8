"""The record schema: the permanent rows about trials and studies, and their files.

A run's truth is a set of immutable Parquet parts. `TrialRecord` is one row about one trial, `StudyRecord`
one row about one study (written after all of its trials). Reading drops duplicates by key: (study, trial)
and (study). The fields of a record are the columns of its files (`TRIAL_SCHEMA`, `STUDY_SCHEMA`), in their order; what
each of them means, its type in a file and where it is shown is in `figures.py`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tuning.basics.wording import encodable
from tuning.records.figures import STUDY_FIGURES, TRIAL_FIGURES, Figure
from tuning.storage.names import mask_in

KIND = b"tuning.kind"  # the key in a part's metadata

FINISHED, STOPPED, FAILED = "finished", "stopped", "failed"
TRIAL_STATES = (FINISHED, STOPPED, FAILED)
OK, NO_MODEL, QUARANTINED = "ok", "no_model", "quarantined"
POOLED = "pool"  # of a customer without a model of its own, whom the run's pool answers
POOL_STUDY = "/pool"  # in place of a study's id: of the trial that the run's pool is
RUNNING, UNFINISHED = "running", "unfinished"  # of a customer without an ended study, on the leaderboard

Config = Mapping[str, Any]  # a value per hyperparameter
MODEL = "model"  # the hyperparameter that names the model family


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
    config: Config
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
    started: float  # seconds since 1970
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

    @property
    def loss(self) -> float:
        """The score, turned so that smaller is better; infinite where there is none."""
        if self.score is None:
            return math.inf
        return -self.score if self.mode == "max" else self.score


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
    config: Config | None
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
    started: float  # seconds since 1970
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
    ensemble: str | None = None
    ensemble_score: float | None = None
    model_bytes: int | None = None
    constant_cv_score: float | None = None
    constant_test_score: float | None = None
    gain_over_constant: float | None = None
    predict_ms_per_row: float | None = None
    refit_seconds: float | None = None
    test_error: float | None = None
    held_back: int | None = None
    gain_error: float | None = None

    @property
    def key(self) -> tuple[str]:
        return (self.study,)


Record = TrialRecord | StudyRecord


def _schema(kind: str, record: type[Record], figures: Iterable[Figure]) -> pa.Schema:
    """The columns of a record's files: its fields, each with the type that its figure has."""
    types = {each.name: each.type for each in figures}
    columns = [(each.name, types[each.name]) for each in fields(record)]
    return pa.schema(columns, metadata={KIND: kind})


TRIAL_SCHEMA = _schema("trials", TrialRecord, TRIAL_FIGURES)
STUDY_SCHEMA = _schema("studies", StudyRecord, STUDY_FIGURES)


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


def best_first(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The full trials of one study by their scores, the best first; of equal ones the earliest. Others are left out."""
    full = [trial for trial in trials if trial.state == FINISHED and trial.score is not None]
    return sorted(full, key=lambda trial: (trial.loss, trial.trial))


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
