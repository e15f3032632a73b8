"""A tracking database before it is written to: created once, by one process, with its experiment."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import sqlalchemy

from tuning.tracking.identity import experiment_name
from tuning.tracking.settings import ARTIFACTS, sqlite_uri
from tuning.tracking.stores.schema import create_database
from tuning.tracking.stores.tables import EXPERIMENT_TAGS, EXPERIMENTS

if TYPE_CHECKING:
    from mlflow import MlflowClient

CACHE_KIB = 64 * 1024
ACTIVE = "active"
WORKSPACE = "default"
KIND = {"mlflow.experimentKind": "custom_model_development"}  # MLflow's page opens on runs, not on traces of chats


class DeletedError(Exception):
    """The experiment is in MLflow's trash."""

    def __init__(self, name: str, number: str) -> None:
        super().__init__(
            f"The MLflow experiment {name!r} is deleted. Restore it "
            f"(`mlflow experiments restore -x {number}`) or use another experiment name; "
            "then `tuning mlflow sync` completes the copy."
        )


def prepare(tracking_uri: str, artifacts: str | None = None) -> None:
    """Create the database and its tables when they are missing, by MLflow itself where it is no new SQLite file.

    Two searches that start together must not both migrate a fresh database, so a lock is held in the meantime: a
    file of this machine. An older schema is left alone: MLflow's error says how to upgrade it.

    artifacts: where MLflow's own experiment 0 keeps its artifacts; default: `mlruns` beside a SQLite file.
    """
    with _alone(tracking_uri):
        path = database_file(tracking_uri)
        if path is None:
            _create(tracking_uri, artifacts or ARTIFACTS)
        elif not path.exists():
            _create_file(path, artifacts or str(path.parent / ARTIFACTS))


def _create(tracking_uri: str, artifacts: str) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    SqlAlchemyStore(tracking_uri, artifacts)


def _create_file(path: Path, artifacts: str) -> None:
    """Make a SQLite database whole or not at all: this process may be killed while MLflow migrates it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".mlflow-", dir=path.parent) as folder:
        fresh = Path(folder, path.name)
        if not create_database(fresh, artifacts):
            _create(sqlite_uri(str(fresh)), artifacts)
        with suppress(FileExistsError):
            os.link(fresh, path)  # unlike a rename, never replaces a file


def database_file(tracking_uri: str) -> Path | None:
    """The file of a SQLite URI; None for all other databases, and for URIs with SQLite's own options."""
    scheme, _, rest = tracking_uri.partition("://")
    if scheme.split("+")[0] != "sqlite" or len(rest) < 2 or rest.startswith(("/:memory:", "/file:")) or "?" in rest:
        return None
    return Path(unquote(rest.removeprefix("/"))).absolute()


def revision(tracking_uri: str) -> str | None:
    """The revision of the database's schema; None when it has none yet. A SQLite file is not created by asking."""

    path = database_file(tracking_uri)
    if path is not None and not path.exists():
        return None
    engine = engine_for(tracking_uri)
    try:
        with engine.connect() as connection:
            if not sqlalchemy.inspect(connection).has_table("alembic_version"):
                return None
            found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars().all()
            return str(found[0]) if len(found) == 1 else None
    finally:
        engine.dispose()


def usable_uri(tracking_uri: str) -> str:
    """`postgresql://` with a driver that is installed: SQLAlchemy 2.1 takes psycopg 3, many have psycopg2 only."""
    scheme, separator, rest = tracking_uri.partition("://")
    if scheme == "postgresql" and not find_spec("psycopg") and find_spec("psycopg2"):
        return f"postgresql+psycopg2{separator}{rest}"
    return tracking_uri


def engine_for(tracking_uri: str) -> sqlalchemy.engine.Engine:
    """An engine whose every wait is bounded, so that an outage is noticed within seconds."""

    url = sqlalchemy.make_url(tracking_uri)
    options: dict[str, str | int | float] = {}
    if url.get_backend_name() == "sqlite":
        if url.database in (None, "", ":memory:"):
            raise ValueError(f"{tracking_uri} is a database in memory; name a file, such as sqlite:///mlflow.db.")
        options = {"timeout": 5.0}
    elif url.get_driver_name() in ("psycopg", "psycopg2"):
        options = {
            "connect_timeout": 5,
            "tcp_user_timeout": 15_000,
            "keepalives_idle": 10,
            "options": "-c statement_timeout=60000 -c lock_timeout=10000",
        }
    engine = sqlalchemy.create_engine(
        url, pool_size=1, max_overflow=1, pool_pre_ping=True, connect_args=options, hide_parameters=True
    )
    if url.get_backend_name() == "sqlite":
        # SQLite's own 2 MB are outgrown by a database of some thousand trials.
        sqlalchemy.event.listen(engine, "connect", lambda raw, _: raw.execute(f"PRAGMA cache_size = -{CACHE_KIB}"))
    return engine


def experiment_id(tracking_uri: str, name: str, artifacts: str | None) -> str:
    """The experiment's id, through MLflow's client; it is created when it is missing.

    Raises `DeletedError` when somebody deleted it in MLflow.
    """
    from mlflow.exceptions import MlflowException

    mlflow_client = client(tracking_uri)
    name = experiment_name(name)
    found = mlflow_client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(mlflow_client.create_experiment(name, artifacts, KIND))
        except MlflowException as error:
            # Another search may have created it in the meantime, or it was created and the reply got lost.
            found = mlflow_client.get_experiment_by_name(name)
            if found is None:
                raise error
    if found.lifecycle_stage != ACTIVE:
        raise DeletedError(name, str(found.experiment_id))
    return str(found.experiment_id)


def experiment_row(engine: sqlalchemy.Engine, name: str, artifacts: str) -> tuple[str, str]:
    """(id, where artifacts are) of the experiment, as rows of a database whose schema we know.

    artifacts: of an experiment that has to be created: an absolute path or a URI. Raises as `experiment_id` does.
    """

    name = experiment_name(name)
    columns = EXPERIMENTS.c
    query = sqlalchemy.select(columns.experiment_id, columns.lifecycle_stage, columns.artifact_location)
    query = query.where(columns.name == name, columns.workspace == WORKSPACE)
    for _ in range(2):
        with engine.connect() as connection:
            found = connection.execute(query).first()
        if found is not None:
            if found[1] != ACTIVE:
                raise DeletedError(name, str(found[0]))
            return str(found[0]), str(found[2])
        now = int(time.time() * 1000)
        row = {"name": name, "artifact_location": artifacts, "lifecycle_stage": ACTIVE, "workspace": WORKSPACE}
        try:
            with engine.begin() as connection:
                connection.execute(EXPERIMENTS.insert().values(**row, creation_time=now, last_update_time=now))
                number = connection.execute(query).scalar_one()
                tags = [{"experiment_id": number, "key": key, "value": value} for key, value in KIND.items()]
                connection.execute(EXPERIMENT_TAGS.insert(), tags)
        except sqlalchemy.exc.IntegrityError:
            continue  # another search has created it in the meantime
    raise OSError(f"The experiment {name!r} can neither be read nor created.")


def client(tracking_uri: str) -> MlflowClient:
    """MLflow's client for a URI, without touching the process's global tracking URI."""
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=tracking_uri, registry_uri=tracking_uri)


@contextmanager
def _alone(tracking_uri: str) -> Iterator[None]:
    digest = hashlib.sha256(tracking_uri.encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"tuning-mlflow-{os.getuid()}-{digest}.lock"
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
