"""Runs as rows: one transaction for thousands of runs, into the tables of MLflow's own SQLAlchemy models.

The client writes a run in several transactions (16 ms per trial on SQLite); this costs 0.2 to 0.4 ms. The tables are
MLflow's private business, so only a schema revision that our tests know is written to like this. MLflow itself is
imported only where its client is needed: for models, and for artifacts that are not on a local disk.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy

from tuning.tracking import mlflow_limits
from tuning.tracking.identity import Search
from tuning.tracking.settings import ARTIFACTS, absolute
from tuning.tracking.stores import tables
from tuning.tracking.stores.bulk_insert import Row, insert
from tuning.tracking.stores.database import client, engine_for, experiment_row
from tuning.tracking.stores.store import RejectedError
from tuning.tracking.tracked_runs import (
    BEST_TAG,
    KEY_TAG,
    NO_MODEL_NOTE,
    NOTE_TAG,
    PARENT_TAG,
    PREFIX,
    RUNNING,
    SEARCH_TAG,
    STUDY,
    TRIAL,
    TRIALS,
    TrackedRun,
    is_surplus,
    replaces,
    user,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient

TESTED_REVISIONS = frozenset({"dc11669786a5"})  # MLflow 3.17
ARTIFACT_URI_LIMIT = 200
_LOOKUP = 500  # ids in one query: SQLite takes 999 parameters at least

_RUN_COLUMNS = (
    "run_uuid",
    "name",
    "source_type",
    "source_name",
    "entry_point_name",
    "user_id",
    "status",
    "start_time",
    "end_time",
    "source_version",
    "lifecycle_stage",
    "artifact_uri",
    "experiment_id",
)
_METRIC_COLUMNS = ("run_uuid", "key", "step", "timestamp", "value", "is_nan")
MetricRow = tuple[str, str, int, int, float, bool]
_TEXT_COLUMNS = ("run_uuid", "key", "value")


class BulkStore:
    """Writes runs into the tables of an MLflow database. One transaction per call of `write`.

    A run is there completely or not at all.
    """

    batch = 5000
    niceness = 0

    def __init__(self, tracking_uri: str, search: Search, artifacts: str | None) -> None:
        self.engine = engine_for(tracking_uri)
        self.tracking_uri = tracking_uri
        self.experiment, location = experiment_row(self.engine, search.experiment, absolute(artifacts or ARTIFACTS))
        self.artifacts = location.rstrip("/")
        self.runs, self.params, self.tags = tables.RUNS, tables.PARAMS, tables.TAGS
        self.metrics, self.latest = tables.METRICS, tables.LATEST
        # Runs that the client wrote earlier (through a server) have ids of MLflow's choice and ours as a tag.
        self.ids = self._foreign_ids(search)

    @cached_property
    def client(self) -> MlflowClient:
        """Costs 2 seconds of CPU: models need it, runs do not."""
        return client(self.tracking_uri)

    def log_artifacts(self, key: str, folder: Path) -> None:
        location = f"{self.artifacts}/{self.run_id(key)}/artifacts"
        if "://" not in location:
            shutil.copytree(folder, location, dirs_exist_ok=True)  # what MLflow's client does, without importing it
        else:
            self.client.log_artifacts(self.run_id(key), str(folder))

    def write(self, runs: Sequence[TrackedRun], done: Callable[[TrackedRun], None]) -> None:
        try:
            with self.engine.begin() as connection:
                self._write(connection, runs)
        except (sqlalchemy.exc.DataError, sqlalchemy.exc.IntegrityError, OverflowError, ValueError) as error:
            raise RejectedError(str(getattr(error, "orig", None) or error)) from error
        for run in runs:
            done(run)

    def mark(self, tags: Mapping[str, Mapping[str, str]]) -> None:
        wanted = {self.run_id(key): values for key, values in tags.items()}
        with self.engine.connect() as connection:
            present = self._best_tags(connection, list(wanted))
            there = self._there(connection, list(wanted))
        rows = [
            (run_uuid, name, value)
            for run_uuid, values in wanted.items()
            if run_uuid in there
            for name, value in values.items()
            if present.get((run_uuid, name)) != value
        ]
        if rows:  # most were written with the tag: no transaction for nothing
            with self.engine.begin() as connection:
                insert(connection, self.tags, _TEXT_COLUMNS, rows, replace=("value",))

    def settle(self) -> None:
        """Nothing to do: a transaction has happened once or not at all."""

    def run_id(self, key: str) -> str:
        return self.ids.get(key, key)

    def _foreign_ids(self, search: Search) -> dict[str, str]:
        tagged, of_search = self.tags.alias(), self.tags.alias()
        query = sqlalchemy.select(tagged.c.value, tagged.c.run_uuid).where(
            tagged.c.key == KEY_TAG,
            of_search.c.key == SEARCH_TAG,
            of_search.c.value == search.id(),
            of_search.c.run_uuid == tagged.c.run_uuid,
        )
        with self.engine.connect() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def _there(self, connection: sqlalchemy.Connection, ids: Sequence[str]) -> dict[str, tuple[str, float, int | None]]:
        """Status, number of trials and end of those runs that are there."""
        found: dict[str, tuple[str, float, int | None]] = {}
        columns, latest = self.runs.c, self.latest.c
        count = (latest.run_uuid == columns.run_uuid) & (latest.key == TRIALS)
        wanted = sqlalchemy.select(columns.run_uuid, columns.status, latest.value, columns.end_time).select_from(
            self.runs.outerjoin(self.latest, count)
        )
        for chunk in _chunks(ids, _LOOKUP):
            for run_uuid, status, trials, end in connection.execute(wanted.where(columns.run_uuid.in_(chunk))):
                found[run_uuid] = (status, trials or 0.0, end)
        return found

    def _best_tags(self, connection: sqlalchemy.Connection, ids: Sequence[str]) -> dict[tuple[str, str], str]:
        """(run, tag) → value of the tags that `mark` sets."""
        tags = self.tags.c
        found: dict[tuple[str, str], str] = {}
        for chunk in _chunks(ids, _LOOKUP):
            query = sqlalchemy.select(tags.run_uuid, tags.key, tags.value)
            for run_uuid, key, value in connection.execute(query.where(tags.run_uuid.in_(chunk), tags.key == BEST_TAG)):
                found[run_uuid, key] = value
        return found

    def _clear(self, connection: sqlalchemy.Connection, studies: Sequence[str]) -> None:
        """Remove what a study's earlier record has left and its new one may not overwrite."""
        tags = self.tags.c
        children = sqlalchemy.select(tags.run_uuid).where(tags.key == PARENT_TAG, tags.value.in_(studies))
        ours = tags.key.like(f"{PREFIX}%") | ((tags.key == NOTE_TAG) & tags.value.like(f"{NO_MODEL_NOTE}%"))
        connection.execute(self.params.delete().where(self.params.c.run_uuid.in_(studies)))
        connection.execute(self.tags.delete().where(tags.run_uuid.in_(studies), ours))
        connection.execute(self.tags.delete().where(tags.key == BEST_TAG, tags.run_uuid.in_(children)))

    def _empty(self, connection: sqlalchemy.Connection, trials: Sequence[str]) -> None:
        """Remove what is in a trial's run, which has run again on other data."""
        ours = self.tags.c.key.like(f"{PREFIX}%")
        for table in (self.params, self.metrics, self.latest):
            connection.execute(table.delete().where(table.c.run_uuid.in_(trials)))
        connection.execute(self.tags.delete().where(self.tags.c.run_uuid.in_(trials), ours))

    def _remove_surplus(self, connection: sqlalchemy.Connection, study: TrackedRun, run_uuid: str) -> None:
        """Remove the trials of a study that it has no more, or that are none of its best ones any more."""
        columns, tags = self.runs.c, self.tags.c
        below = (tags.run_uuid == columns.run_uuid) & (tags.key == PARENT_TAG) & (tags.value == run_uuid)
        query = sqlalchemy.select(columns.run_uuid, columns.end_time).select_from(self.runs.join(self.tags, below))
        keys = {known: key for key, known in self.ids.items()}
        found = [
            child for child, end in connection.execute(query).all() if is_surplus(study, keys.get(child, child), end)
        ]
        for table in (self.params, self.metrics, self.latest, self.tags, self.runs):
            for chunk in _chunks(found, _LOOKUP):
                connection.execute(table.delete().where(table.c.run_uuid.in_(chunk)))

    def _write(self, connection: sqlalchemy.Connection, runs: Sequence[TrackedRun]) -> None:
        there = self._there(connection, [self.run_id(run.key) for run in runs])
        rows = _Rows()
        cleared: dict[str, list[str]] = {STUDY: [], TRIAL: []}
        for run in runs:
            run_uuid = self.run_id(run.key)
            before = there.get(run_uuid)
            if before is not None:
                if not replaces(run, *before):
                    continue
                if run.kind == STUDY and (run.children is not None or before[1] > run.trials) and before[0] != RUNNING:
                    self._remove_surplus(connection, run, run_uuid)
                if before[0] != RUNNING and run.kind in (STUDY, TRIAL):
                    cleared[run.kind].append(run_uuid)
            self._add(rows, run_uuid, run)
        if cleared[STUDY]:
            self._clear(connection, cleared[STUDY])
        if cleared[TRIAL]:
            self._empty(connection, cleared[TRIAL])
        self._insert(connection, rows)

    def _add(self, rows: _Rows, run_uuid: str, run: TrackedRun) -> None:
        rows.runs.append(self._run_row(run_uuid, run))
        rows.params += [(run_uuid, key, value) for key, value in run.params.items()]
        history: list[MetricRow] = [
            (run_uuid, key, step, when, *mlflow_limits.stored(value)) for key, value, step, when in run.metrics
        ]
        if not run.short:
            rows.metrics += history
        rows.latest += _latest(history)
        rows.tags += [(run_uuid, key, value) for key, value in run.tags.items()]
        if run.parent is not None:
            rows.tags.append((run_uuid, PARENT_TAG, self.run_id(run.parent)))

    def _insert(self, connection: sqlalchemy.Connection, rows: _Rows) -> None:
        """Rows of all tables, a run before what refers to it."""
        insert(connection, self.runs, _RUN_COLUMNS, rows.runs, ("name", "status", "start_time", "end_time"))
        insert(connection, self.params, _TEXT_COLUMNS, rows.params, ("value",))
        insert(connection, self.metrics, _METRIC_COLUMNS, rows.metrics)
        insert(connection, self.latest, _METRIC_COLUMNS, rows.latest, _METRIC_COLUMNS[2:])
        insert(connection, self.tags, _TEXT_COLUMNS, rows.tags, ("value",))

    def _run_row(self, run_uuid: str, run: TrackedRun) -> Row:
        location = f"{self.artifacts}/{run_uuid}/artifacts"
        return (
            run_uuid,
            run.name,
            "LOCAL",
            "",
            "",
            user(),
            run.status,
            run.start,
            run.end,
            "",
            "active",
            location if len(location) <= ARTIFACT_URI_LIMIT or self.engine.dialect.name == "sqlite" else None,
            int(self.experiment),
        )


@dataclass(slots=True)
class _Rows:
    """What runs are, table by table."""

    runs: list[Row] = field(default_factory=list)
    params: list[Row] = field(default_factory=list)
    metrics: list[MetricRow] = field(default_factory=list)
    latest: list[MetricRow] = field(default_factory=list)
    tags: list[Row] = field(default_factory=list)


def _latest(history: Sequence[MetricRow]) -> Iterable[MetricRow]:
    """Of each metric the row that MLflow calls its latest: highest step, then time, then value."""
    latest: dict[str, MetricRow] = {}
    for row in history:
        before = latest.get(row[1])
        if before is None or row[2:5] > before[2:5]:
            latest[row[1]] = row
    return latest.values()


def _chunks(values: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
