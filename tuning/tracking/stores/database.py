"""A tracking database before it is written to: its URI, its engine, and how a new one is made."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import sqlalchemy

from tuning.tracking.settings import ARTIFACTS, absolute, sqlite_uri

if TYPE_CHECKING:
    from mlflow import MlflowClient

CACHE_VARIABLE = "TUNING_CACHE"
NO_CACHE = "off"
CACHE_KIB = 64 * 1024


def prepare(tracking_uri: str, artifacts: str | None = None) -> None:
    """Have MLflow make the database and its tables, when they are missing.

    Two searches that start together must not both migrate a fresh database, so a lock is held in the meantime: a
    file of this machine. An older schema is left alone.

    artifacts: where experiment 0 of a new SQLite file keeps its artifacts; default: `mlruns` beside the file.
    """
    path = database_file(tracking_uri)
    with _locked(tracking_uri):
        if initialized(tracking_uri):
            return
        if path is None or path.exists():
            _create(tracking_uri)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: this process may be killed in the meantime.
        with tempfile.TemporaryDirectory(prefix=".mlflow-", dir=path.parent) as folder:
            fresh = Path(folder, path.name)
            _copy_empty(fresh)
            _settle_default_experiment(fresh, artifacts or absolute(str(path.parent / ARTIFACTS)))
            with suppress(FileExistsError):
                os.link(fresh, path)  # unlike a rename, never replaces a file


def _copy_empty(target: Path) -> None:
    """Copy the empty database that is kept, or one that MLflow makes, in 3 core-seconds."""
    kept = kept_database()
    with _locked(str(kept or target)), tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "mlflow.db")
        if kept is not None and _usable(kept):
            made = kept
        else:
            _create(sqlite_uri(str(made)))
        shutil.copyfile(made, target)
        if kept not in (None, made):
            with suppress(OSError):  # no place, no permission: the next run has another one made
                kept.parent.mkdir(parents=True, exist_ok=True)
                os.replace(shutil.copyfile(made, kept.with_name(f".{kept.name}.{os.getpid()}")), kept)


def kept_database() -> Path | None:
    """Return where the empty database of the installed MLflow is kept; None when nothing is to be kept.

    `TUNING_CACHE` names the folder, or is "off"; default: `tuning-service` in the user's cache folder.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen == NO_CACHE:
        return None
    from platformdirs import user_cache_path

    folder = Path(chosen) if chosen else user_cache_path("tuning-service", appauthor=False)
    return folder / f"mlflow-{version('mlflow')}.db" if folder.is_absolute() else None  # "~" of a user without a home


def _usable(path: Path) -> bool:
    """Whether the file is a whole database of MLflow without any run."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            found = "SELECT *, (SELECT count(*) FROM runs, alembic_version) FROM pragma_quick_check"
            return connection.execute(found).fetchall() == [("ok", 0)]
    except sqlite3.Error:
        return False


def _create(tracking_uri: str) -> None:
    """MLflow's client makes what is missing when it is used."""
    client(tracking_uri).search_experiments(max_results=1)


def _settle_default_experiment(database: Path, artifacts: str) -> None:
    """Experiment 0, which MLflow has made in the folder and at the time of another database."""
    now = int(time.time() * 1000)
    update = "UPDATE experiments SET artifact_location = ?, creation_time = ?, last_update_time = ?"
    with suppress(sqlite3.Error), closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(update, (f"{artifacts}/0", now, now))  # nothing of ours depends on it


def database_file(tracking_uri: str) -> Path | None:
    """Return the file of a SQLite URI; None for all other databases, and for URIs with SQLite's own options."""
    scheme, _, rest = tracking_uri.partition("://")
    if scheme.split("+")[0] != "sqlite" or len(rest) < 2 or rest.startswith(("/:memory:", "/file:")) or "?" in rest:
        return None
    return Path(unquote(rest.removeprefix("/"))).absolute()


def initialized(tracking_uri: str) -> bool:
    """Return whether MLflow has made its tables there. Asking makes no SQLite file."""
    path = database_file(tracking_uri)
    if path is not None and not path.exists():
        return False
    engine = engine_for(tracking_uri)
    try:
        return sqlalchemy.inspect(engine).has_table("alembic_version")
    finally:
        engine.dispose()


def usable_uri(tracking_uri: str) -> str:
    """Name a driver that is installed: of `postgresql://` SQLAlchemy 2.1 takes psycopg 3, many have psycopg2 only."""
    scheme, separator, rest = tracking_uri.partition("://")
    if scheme == "postgresql" and not find_spec("psycopg") and find_spec("psycopg2"):
        return f"postgresql+psycopg2{separator}{rest}"
    return tracking_uri


def engine_for(tracking_uri: str) -> sqlalchemy.engine.Engine:
    """Return an engine whose every wait is bounded, so that an outage is noticed within seconds."""
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


def client(tracking_uri: str) -> MlflowClient:
    """Return MLflow's client for a URI, without touching the process's global tracking URI."""
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=tracking_uri, registry_uri=tracking_uri)


@contextmanager
def _locked(place: str) -> Iterator[None]:
    digest = hashlib.sha256(place.encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"tuning-mlflow-{os.getuid()}-{digest}.lock"
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
