"""Runs as rows: one transaction for thousands of runs, into the tables that MLflow has made.

The client writes a run in several transactions (15 ms per trial on SQLite); this costs 0.2 to 0.4 ms. MLflow itself is
imported, in 2 core-seconds, only where its client is needed: for models, and for artifacts on no local disk.
"""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path

import sqlalchemy

from tuning.tracking import mlflow_names
from tuning.tracking.mlflow_names import TrackedSearch, experiment_name
from tuning.tracking.models import ModelLogger
from tuning.tracking.settings import ARTIFACTS, absolute
from tuning.tracking.stores.database import client, engine_for
from tuning.tracking.stores.store import ACTIVE, EXPERIMENT_TAGS, DeletedExperimentError, RejectedError, Store
from tuning.tracking.stores.tables import Row, insert, read_tables
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
    KnownRun,
    TrackedRun,
    is_surplus,
    replaces,
    user,
)

WORKSPACE = "default"
ARTIFACT_URI_LIMIT = 200  # of MLflow's column, which SQLite does not hold to
LOOKUP = 500  # ids in one query: SQLite takes 999 parameters at least

# Table → what is overwritten in a row that is already there. A run stands before what refers to it.
OVERWRITTEN = {
    "runs": ("name", "status", "start_time", "end_time"),
    "params": ("value",),
    "metrics": (),
    "latest_metrics": ("step", "timestamp", "value", "is_nan"),
    "tags": ("value",),
}


class BulkStore(Store):
    """Writes runs into the tables of an MLflow database. One transaction per call of `write`.

    A run is there completely or not at all. Raises `OtherTablesError` when the tables are not those that it can fill.
    """

    batch = 5000

    def __init__(self, tracking_uri: str, search: TrackedSearch, artifacts: str | None) -> None:
        self.engine = engine_for(tracking_uri)
        self.tracking_uri = tracking_uri
        self.search = search
        self.tables = read_tables(self.engine)
        self.runs, self.params, self.tags = self.tables["runs"], self.tables["params"], self.tables["tags"]
        self.metrics, self.latest = self.tables["metrics"], self.tables["latest_metrics"]
        self.experiment, location = self._experiment(search.experiment, absolute(artifacts or ARTIFACTS))
        self.artifacts = location.rstrip("/")
        # Runs that the client wrote earlier (through a server) have ids of MLflow's choice and ours as a tag.
        self.ids = self._foreign_ids()

    def log_artifacts(self, key: str, folder: Path) -> None:
        location = f"{self.artifacts}/{self.run_id(key)}/artifacts"
        if "://" not in location:
            shutil.copytree(folder, location, dirs_exist_ok=True)  # what MLflow's client does, without importing it
        else:
            client(self.tracking_uri).log_artifacts(self.run_id(key), str(folder))

    def write(self, runs: Sequence[TrackedRun], done: Callable[[TrackedRun], None]) -> None:
        try:
            with self.engine.begin() as connection:
                self._write(connection, runs)
        except (sqlalchemy.exc.DataError, sqlalchemy.exc.IntegrityError, OverflowError, ValueError) as error:
            raise RejectedError(str(getattr(error, "orig", None) or error)) from error
        for run in runs:
            done(run)

    def mark_best(self, keys: Iterable[str]) -> None:
        with self.engine.begin() as connection:
            there = self._known_runs(connection, [self.run_id(key) for key in keys])
            insert(connection, self.tags, [(run_uuid, BEST_TAG, "true") for run_uuid in there])

    def models(self) -> ModelLogger:
        return ModelLogger(client(self.tracking_uri), self.experiment, self.search)

    def run_id(self, key: str) -> str:
        return self.ids.get(key, key)

    def _experiment(self, name: str, artifacts: str) -> tuple[str, str]:
        """(id, where artifacts are) of the experiment, which is created when it is missing.

        artifacts: of an experiment that has to be created: an absolute path or a URI.
        """
        name, table = experiment_name(name), self.tables["experiments"]
        columns = table.c
        query = sqlalchemy.select(columns.experiment_id, columns.lifecycle_stage, columns.artifact_location)
        query = query.where(columns.name == name)
        if "workspace" in columns:  # since MLflow 3.10
            query = query.where(columns.workspace == WORKSPACE)
        for _ in range(2):
            with self.engine.connect() as connection:
                found = connection.execute(query).first()
            if found is not None:
                if found[1] != ACTIVE:
                    raise DeletedExperimentError(name, str(found[0]))
                return str(found[0]), str(found[2])
            now = int(time.time() * 1000)
            row = {"name": name, "artifact_location": artifacts, "lifecycle_stage": ACTIVE}
            # Another search may have created it in the meantime.
            with suppress(sqlalchemy.exc.IntegrityError), self.engine.begin() as connection:
                connection.execute(table.insert().values(**row, creation_time=now, last_update_time=now))
                number = connection.execute(query).scalar_one()
                tags: list[Row] = [(number, key, value) for key, value in EXPERIMENT_TAGS.items()]
                insert(connection, self.tables["experiment_tags"], tags)
        raise OSError(f"The experiment {name!r} can neither be read nor created.")

    def _foreign_ids(self) -> dict[str, str]:
        tags = self.tags.c
        of_search = sqlalchemy.select(tags.run_uuid).where(tags.key == SEARCH_TAG, tags.value == self.search.id())
        query = sqlalchemy.select(tags.value, tags.run_uuid).where(tags.key == KEY_TAG, tags.run_uuid.in_(of_search))
        with self.engine.connect() as connection:
            return dict(connection.execute(query).all())

    def _known_runs(self, connection: sqlalchemy.Connection, ids: Sequence[str]) -> dict[str, KnownRun]:
        """Those runs that are there, by id."""
        columns, latest = self.runs.c, self.latest.c
        count = (latest.run_uuid == columns.run_uuid) & (latest.key == TRIALS)
        wanted = sqlalchemy.select(columns.run_uuid, columns.status, latest.value, columns.end_time).select_from(
            self.runs.outerjoin(self.latest, count)
        )
        return {
            run_uuid: KnownRun(run_uuid, status, trials or 0.0, end)
            for chunk in _chunks(ids)
            for run_uuid, status, trials, end in connection.execute(wanted.where(columns.run_uuid.in_(chunk)))
        }

    def _write(self, connection: sqlalchemy.Connection, runs: Sequence[TrackedRun]) -> None:
        there = self._known_runs(connection, [self.run_id(run.key) for run in runs])
        rows: defaultdict[str, list[Row]] = defaultdict(list)
        outdated = []
        for run in runs:
            run_uuid = self.run_id(run.key)
            before = there.get(run_uuid)
            if before is not None:
                if not replaces(run, before):
                    continue
                if before.status != RUNNING and run.kind in (STUDY, TRIAL):
                    outdated.append(run_uuid)
                    if run.kind == STUDY and (run.children is not None or before.trials > run.trials):
                        self._remove_surplus(connection, run, run_uuid)
            self._add(rows, run_uuid, run)
        self._clear(connection, outdated)
        for name, overwritten in OVERWRITTEN.items():
            insert(connection, self.tables[name], rows[name], overwritten)

    def _clear(self, connection: sqlalchemy.Connection, outdated: Sequence[str]) -> None:
        """Remove what the runs' earlier records have left and their new ones may not overwrite."""
        tags = self.tags.c
        ours = tags.key.like(f"{PREFIX}%") | ((tags.key == NOTE_TAG) & tags.value.like(f"{NO_MODEL_NOTE}%"))
        for chunk in _chunks(outdated):
            for table in (self.params, self.metrics, self.latest):
                connection.execute(table.delete().where(table.c.run_uuid.in_(chunk)))
            children = sqlalchemy.select(tags.run_uuid).where(tags.key == PARENT_TAG, tags.value.in_(chunk))
            connection.execute(self.tags.delete().where(tags.key == BEST_TAG, tags.run_uuid.in_(children)))
            connection.execute(self.tags.delete().where(tags.run_uuid.in_(chunk), ours))

    def _remove_surplus(self, connection: sqlalchemy.Connection, study: TrackedRun, run_uuid: str) -> None:
        """Remove the trials of a study that it has no more, or that are none of its best ones any more."""
        tags, keys = self.tags.c, {known: key for key, known in self.ids.items()}
        below = sqlalchemy.select(tags.run_uuid).where(tags.key == PARENT_TAG, tags.value == run_uuid)
        found = [child for child in connection.scalars(below) if is_surplus(study, keys.get(child, child))]
        for table in (self.params, self.metrics, self.latest, self.tags, self.runs):
            for chunk in _chunks(found):
                connection.execute(table.delete().where(table.c.run_uuid.in_(chunk)))

    def _add(self, rows: defaultdict[str, list[Row]], run_uuid: str, run: TrackedRun) -> None:
        location = f"{self.artifacts}/{run_uuid}/artifacts"
        fits = len(location) <= ARTIFACT_URI_LIMIT or self.engine.dialect.name == "sqlite"
        place = location if fits else None
        times = (run.status, run.start, run.end)
        rows["runs"].append(
            (run_uuid, run.name, "LOCAL", "", "", user(), *times, "", ACTIVE, place, int(self.experiment))
        )
        rows["params"] += [(run_uuid, key, value) for key, value in run.params.items()]
        history = [(run_uuid, key, step, when, *mlflow_names.stored(value)) for key, value, step, when in run.metrics]
        if not run.short:
            rows["metrics"] += history
        # Of each metric: highest step, then time, then value.
        rows["latest_metrics"] += {row[1]: row for row in sorted(history, key=itemgetter(2, 3, 4))}.values()
        rows["tags"] += [(run_uuid, key, value) for key, value in run.tags.items()]
        if run.parent is not None:
            rows["tags"].append((run_uuid, PARENT_TAG, self.run_id(run.parent)))


def _chunks(values: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(values), LOOKUP):
        yield values[start : start + LOOKUP]
