"""A new SQLite database for MLflow, made from the statements in `schema.sql`.

MLflow makes one by importing itself and running all its migrations: 4 seconds of CPU for every run that has a database
of its own. The statements are what comes out, for the one version of MLflow named in their first line; with any other
version MLflow makes the database itself. `python -m tuning.tracking.stores.schema` writes the file again, and a test
compares it with what the installed MLflow makes.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

STATEMENTS = Path(__file__).with_name("schema.sql")
HEAD = "-- MLflow {version}\n"
DEFAULT_EXPERIMENT = "0"


def create_database(path: Path, artifacts: str) -> bool:
    """Make the database; False when the statements are those of another version of MLflow.

    Args:
        path: of a file that does not exist.
        artifacts: folder or URI below which MLflow's own experiment 0 keeps its artifacts.
    """
    head, _, statements = STATEMENTS.read_text(encoding="utf-8").partition("\n")
    if head != HEAD.format(version=version("mlflow")).strip():
        return False
    now = int(time.time() * 1000)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(statements)
        with connection:
            connection.execute(
                "UPDATE experiments SET artifact_location = ?, creation_time = ?, last_update_time = ?",
                (f"{artifacts}/{DEFAULT_EXPERIMENT}", now, now),
            )
    return True


def statements_of(path: Path) -> str:
    """The statements that make an empty database like this one."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE experiments SET artifact_location = '', creation_time = 0, last_update_time = 0")
        return "\n".join(connection.iterdump()) + "\n"


def mlflows_own(folder: Path) -> Path:
    """A database that the installed MLflow makes in a folder."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    path = folder / "mlflow.db"
    SqlAlchemyStore(f"sqlite:///{path}", str(folder / "mlruns")).engine.dispose()
    return path


def main() -> None:
    """Write the statements of the installed MLflow."""
    with tempfile.TemporaryDirectory() as folder:
        text = statements_of(mlflows_own(Path(folder)))
    STATEMENTS.write_text(HEAD.format(version=version("mlflow")) + text, encoding="utf-8")


if __name__ == "__main__":
    main()
