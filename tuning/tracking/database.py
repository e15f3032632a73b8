"""A tracking database before it is written to: made once, by one process, through MLflow's own client."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuning.tracking.identity import experiment_name

if TYPE_CHECKING:
    import sqlalchemy

CACHE_KIB = 64 * 1024


def prepare(tracking_uri: str) -> None:
    """Create the database and its tables when they are missing (2 to 6 s, once).

    Two searches that start together must not both migrate a fresh database, so a lock is held meanwhile: a
    file of this machine. An older schema is left alone: MLflow's error says how to upgrade it.
    """
    with _alone(tracking_uri):
        client(tracking_uri).search_experiments(max_results=1)


def usable_uri(tracking_uri: str) -> str:
    """`postgresql://` with a driver that is installed: SQLAlchemy 2.1 takes psycopg 3, many have psycopg2 only."""
    scheme, separator, rest = tracking_uri.partition("://")
    if scheme == "postgresql" and not find_spec("psycopg") and find_spec("psycopg2"):
        return f"postgresql+psycopg2{separator}{rest}"
    return tracking_uri


def engine_for(tracking_uri: str) -> sqlalchemy.engine.Engine:
    """An engine whose every wait is bounded, so that an outage is noticed within seconds."""
    import sqlalchemy

    url = sqlalchemy.make_url(tracking_uri)
    options: dict[str, Any] = {}
    if url.get_backend_name() == "sqlite":
        options = {"timeout": 5.0}
    elif url.get_driver_name() in ("psycopg", "psycopg2"):
        options = {
            "connect_timeout": 5,
            "tcp_user_timeout": 15_000,
            "keepalives_idle": 10,
            "options": "-c statement_timeout=60000 -c lock_timeout=10000",
        }
    engine = sqlalchemy.create_engine(url, connect_args=options, pool_size=1, max_overflow=1, pool_pre_ping=True)
    if url.get_backend_name() == "sqlite":
        # SQLite's own 2 MB are outgrown by a database of some thousand trials.
        sqlalchemy.event.listen(engine, "connect", lambda raw, _: raw.execute(f"PRAGMA cache_size = -{CACHE_KIB}"))
    return engine


def experiment_id(tracking_uri: str, name: str, artifacts: str | None) -> str:
    """The experiment's id; it is created when it is missing.

    Raises `mlflow.exceptions.MlflowException` when somebody deleted it in MLflow.
    """
    from mlflow.exceptions import MlflowException

    mlflow_client = client(tracking_uri)
    name = experiment_name(name)
    found = mlflow_client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(mlflow_client.create_experiment(name, artifact_location=artifacts))
        except MlflowException as error:
            # Another search may have created it meanwhile, or it was created and the reply got lost.
            found = mlflow_client.get_experiment_by_name(name)
            if found is None:
                raise error
    if found.lifecycle_stage != "active":
        raise MlflowException(
            f"The MLflow experiment {name!r} is deleted. Restore it "
            f"(`mlflow experiments restore -x {found.experiment_id}`) or use another experiment name; "
            "then `tuning mlflow sync` completes the copy."
        )
    return str(found.experiment_id)


def client(tracking_uri: str) -> Any:
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
