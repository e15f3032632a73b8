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
from typing import TYPE_CHECKING, Any

from tuning.tracking import mlflow_limits
from tuning.tracking.identity import Search
from tuning.tracking.settings import ARTIFACTS, absolute
from tuning.tracking.stores.bulk_insert import Row, copy, insert
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
    TRIALS,
    TrackedRun,
    replaces,
    user,
)

if TYPE_CHECKING:
    import sqlalchemy

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
_TEXT_COLUMNS = ("run_uuid", "key", "value")


class BulkStore:
    """Writes runs into the tables of an MLflow database. One transaction per call of `write`.

    A run is there completely or not at all.
    """

    batch = 5000
    niceness = 0

    def __init__(self, tracking_uri: str, search: Search, artifacts: str | None) -> None:
        from tuning.tracking.stores import tables

        self.engine = engine_for(tracking_uri)
        self.tracking_uri = tracking_uri
        self.experiment, location = experiment_row(self.engine, search.experiment, absolute(artifacts or ARTIFACTS))
        self.artifacts = location.rstrip("/")
        self.runs, self.params, self.tags = tables.RUNS, tables.PARAMS, tables.TAGS
        self.metrics, self.latest = tables.METRICS, tables.LATEST
        # Runs that the client wrote earlier (through a server) have ids of MLflow's choice and ours as a tag.
        self.ids = self._foreign_ids(search)

    @cached_property
    def client(self) -> Any:
        """Costs 2 seconds of CPU: models need it, runs do not."""
        return client(self.tracking_uri)

    @property
    def driver(self) -> Any:
        """The database's driver: COPY goes past SQLAlchemy, and so do its errors."""
        return self.engine.dialect.dbapi

    def log_artifacts(self, key: str, folder: Path) -> None:
        location = f"{self.artifacts}/{self.run_id(key)}/artifacts"
        if "://" not in location:
            shutil.copytree(folder, location, dirs_exist_ok=True)  # what MLflow's client does, without importing it
        else:
            self.client.log_artifacts(self.run_id(key), str(folder))

    def write(self, runs: Sequence[TrackedRun], done: Callable[[TrackedRun], None]) -> None:
        import sqlalchemy

        wrapped = (sqlalchemy.exc.DataError, sqlalchemy.exc.IntegrityError)
        try:
            with self.engine.begin() as connection:
                self._write(connection, runs)
        except (*wrapped, self.driver.DataError, self.driver.IntegrityError, OverflowError, ValueError) as error:
            raise RejectedError(str(getattr(error, "orig", None) or error)) from error
        for run in runs:
            done(run)

    def mark(self, tags: Mapping[str, Mapping[str, str]]) -> None:
        wanted = {self.run_id(key): values for key, values in tags.items()}
        with self.engine.connect() as connection:
            present = {(row[0], row[1]): row[2] for row in self._tags_of(connection, list(wanted))}
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
        import sqlalchemy

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
        import sqlalchemy

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

    def _tags_of(self, connection: sqlalchemy.Connection, ids: Sequence[str]) -> Iterator[Any]:
        import sqlalchemy

        tags = self.tags.c
        for chunk in _chunks(ids, _LOOKUP):
            query = sqlalchemy.select(tags.run_uuid, tags.key, tags.value)
            yield from connection.execute(query.where(tags.run_uuid.in_(chunk), tags.key == BEST_TAG))

    def _clear(self, connection: sqlalchemy.Connection, studies: Sequence[str]) -> None:
        """Remove what a study's earlier record has left and its new one may not overwrite."""
        import sqlalchemy

        tags = self.tags.c
        children = sqlalchemy.select(tags.run_uuid).where(tags.key == PARENT_TAG, tags.value.in_(studies))
        ours = tags.key.like(f"{PREFIX}%") | ((tags.key == NOTE_TAG) & tags.value.like(f"{NO_MODEL_NOTE}%"))
        connection.execute(self.params.delete().where(self.params.c.run_uuid.in_(studies)))
        connection.execute(self.tags.delete().where(tags.run_uuid.in_(studies), ours))
        connection.execute(self.tags.delete().where(tags.key == BEST_TAG, tags.run_uuid.in_(children)))

    def _write(self, connection: sqlalchemy.Connection, runs: Sequence[TrackedRun]) -> None:
        there = self._there(connection, [self.run_id(run.key) for run in runs])
        fresh, again = _Rows(), _Rows()  # of runs that are not there yet, and of those that are overwritten
        cleared: list[str] = []
        for run in runs:
            run_uuid = self.run_id(run.key)
            before = there.get(run_uuid)
            if before is None:
                self._add(fresh, run_uuid, run)
            elif replaces(run, *before):
                if before[0] != RUNNING and run.kind == STUDY:
                    cleared.append(run_uuid)
                self._add(again, run_uuid, run)
        if cleared:
            self._clear(connection, cleared)
        if self.engine.dialect.name == "sqlite" or not self._copied(connection, fresh):
            self._insert(connection, fresh)
        self._insert(connection, again)

    def _add(self, rows: _Rows, run_uuid: str, run: TrackedRun) -> None:
        rows.runs.append(self._run_row(run_uuid, run))
        rows.params += [(run_uuid, key, value) for key, value in run.params.items()]
        history: list[Row] = [
            (run_uuid, key, step, when, *mlflow_limits.stored(value)) for key, value, step, when in run.metrics
        ]
        rows.metrics += history
        rows.latest += _latest(history)
        rows.tags += [(run_uuid, key, value) for key, value in run.tags.items()]
        if run.parent is not None:
            rows.tags.append((run_uuid, PARENT_TAG, self.run_id(run.parent)))

    def _insert(self, connection: sqlalchemy.Connection, rows: _Rows) -> None:
        for table, columns, values, replace in self._by_table(rows):
            insert(connection, table, columns, values, replace)

    def _by_table(self, rows: _Rows) -> Iterator[tuple[sqlalchemy.Table, Sequence[str], list[Row], Sequence[str]]]:
        """(table, columns, rows, columns that are overwritten), a run before what refers to it."""
        yield self.runs, _RUN_COLUMNS, rows.runs, ("name", "status", "start_time", "end_time")
        yield self.params, _TEXT_COLUMNS, rows.params, ("value",)
        yield self.metrics, _METRIC_COLUMNS, rows.metrics, ()
        yield self.latest, _METRIC_COLUMNS, rows.latest, _METRIC_COLUMNS[2:]
        yield self.tags, _TEXT_COLUMNS, rows.tags, ("value",)

    def _copied(self, connection: sqlalchemy.Connection, rows: _Rows) -> bool:
        """Copy rows of runs that were not there a moment ago; False, and nothing done, when another writer has put
        one there meanwhile or a run has the same figure twice."""
        savepoint = connection.begin_nested()
        try:
            for table, columns, values, _ in self._by_table(rows):
                copy(connection, table, columns, values)
        except self.driver.IntegrityError:
            savepoint.rollback()
            return False
        savepoint.commit()
        return True

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
    metrics: list[Row] = field(default_factory=list)
    latest: list[Row] = field(default_factory=list)
    tags: list[Row] = field(default_factory=list)


def _latest(history: Sequence[Row]) -> Iterable[Row]:
    """Of each metric the row that MLflow calls its latest: highest step, then time, then value."""
    latest: dict[str, Row] = {}
    for row in history:
        before = latest.get(row[1])
        if before is None or row[2:5] > before[2:5]:
            latest[row[1]] = row
    return latest.values()


def _chunks(values: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
