"""New SQLite databases for MLflow: copies of an empty one, which MLflow itself made once on this machine.

MLflow creates a database by running all migrations that it ever had: 3 seconds of CPU with its imports, for every run
that has a database of its own. The empty one is kept in the user's cache folder, for each version of MLflow.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

CACHE = "tuning-service"
DEFAULT_EXPERIMENT = 0
ARTIFACTS = "mlruns"


def new_database(path: Path) -> bool:
    """Make an empty MLflow database; True when it was made, or by somebody else meanwhile; False when a file was there.

    MLflow's own experiment 0 keeps its artifacts beside the file, not in a folder of whoever was first.
    """
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".mlflow-", dir=path.parent) as folder:
        fresh = Path(folder, path.name)
        cached = cache_file()
        if cached is not None and _usable(cached):
            shutil.copyfile(cached, fresh)
        else:
            _make(fresh)
            if cached is not None:
                _keep(fresh, cached)
        now = int(time.time() * 1000)
        with closing(sqlite3.connect(fresh)) as connection, connection:
            connection.execute(
                "UPDATE experiments SET artifact_location = ?, creation_time = ?, last_update_time = ? "
                "WHERE experiment_id = ?",
                (str(path.parent / ARTIFACTS / str(DEFAULT_EXPERIMENT)), now, now, DEFAULT_EXPERIMENT),
            )
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)  # unlike a rename, never replaces a file
    return True


def cache_file() -> Path | None:
    """Where the empty database is kept; None when this user has no home."""
    try:
        place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return place / CACHE / f"mlflow-{version('mlflow')}.db"


def _usable(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            revisions = connection.execute("SELECT count(*) FROM alembic_version").fetchone()
            others = connection.execute("SELECT count(*) FROM experiments WHERE experiment_id <> 0").fetchone()
            whole = connection.execute("PRAGMA quick_check").fetchone()
            return (*revisions, *others, *whole) == (1, 0, "ok")
    except sqlite3.Error:
        return False


def _make(path: Path) -> None:
    from mlflow import MlflowClient

    uri = f"sqlite:///{path}"
    MlflowClient(tracking_uri=uri, registry_uri=uri).search_experiments(max_results=1)


def _keep(made: Path, cached: Path) -> None:
    with contextlib.suppress(OSError):  # no place, no permission: the next run makes its own again
        cached.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cached.parent) as folder:
            copy = Path(folder, cached.name)
            shutil.copyfile(made, copy)
            os.replace(copy, cached)
