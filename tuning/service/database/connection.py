"""Transactions on SQLite and PostgreSQL: short ones, one writer at a time.

SQLite's write-ahead log lets readers go on while somebody writes. A write begins with `BEGIN IMMEDIATE`, so that it
waits for its turn at the beginning and cannot fail in its middle because another was quicker; on PostgreSQL an advisory
lock does the same.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from tuning.errors import DefinitionError, UnavailableError

BUSY_S = 35.0  # for which a writer waits for another; a database that is locked for longer is told to be so
WRITER = 0x74756E65  # the advisory lock of PostgreSQL; a number that nobody else is likely to take


class Database:
    """A database of the service.

    Raises `DefinitionError` for a URL that is none, `UnavailableError` where it cannot be reached or is locked.
    """

    def __init__(self, url: str) -> None:
        try:
            self.url = make_url(url)
        except ArgumentError as error:
            raise DefinitionError(
                f"--database {url!r} is not a database's URL. Give one such as sqlite:///tuning.db or "
                "postgresql+psycopg://user@host/tuning."
            ) from error
        if self.url.get_backend_name() not in ("sqlite", "postgresql"):
            raise DefinitionError(
                f"--database: {self.url.get_backend_name()!r} is not supported. Use sqlite:///FILE or postgresql://…"
            )
        if self.url.drivername == "postgresql":
            self.url = self.url.set(drivername="postgresql+psycopg")
        self.engine = self._connected()

    @property
    def shown(self) -> str:
        """The URL without its password."""
        return self.url.render_as_string(hide_password=True)

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database."""
        with self._translated(), self.engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def write(self, *, references: bool = True) -> Iterator[Connection]:
        """A transaction that may change it; all of its changes are kept, or none.

        references: False where a table is made anew, as SQLite changes a column: what refers to its rows stays.
        """
        options: dict[str, object] = {"writes": True, "references": "ON" if references else "OFF"}
        with self._translated(), self.engine.connect().execution_options(**options) as connection, connection.begin():
            if self.engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": WRITER})
            yield connection

    def close(self) -> None:
        self.engine.dispose()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise UnavailableError(
                f"the service's database {self.shown} cannot be used: {str(error.orig).strip().splitlines()[0]}. "
                "Nothing was changed. Try again when it can be reached."
            ) from error

    def _connected(self) -> Engine:
        try:
            if self.url.get_backend_name() == "sqlite":
                if self.url.database:
                    _keep_private(Path(self.url.database))
                engine = create_engine(self.url, connect_args={"timeout": BUSY_S}, hide_parameters=True)
                event.listen(engine, "connect", _configure_sqlite)
                event.listen(engine, "begin", _begin_sqlite)
                return engine
            return create_engine(self.url, pool_pre_ping=True, hide_parameters=True)
        except (NoSuchModuleError, ModuleNotFoundError) as error:
            raise DefinitionError(
                f"--database {self.shown}: its driver is not installed ({error}). Install the extra `postgres`."
            ) from error


def _keep_private(file: Path) -> None:
    """Begin a new database as a file for its owner alone; SQLite makes its further files alike."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):  # what is wrong with the place is said when it is used
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))


def _configure_sqlite(connection, _record) -> None:  # type: ignore[no-untyped-def]  # the driver's own, which has no types
    connection.isolation_level = None  # no BEGIN of the driver's own: `_begin_sqlite` says it
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    # A table that is dropped takes the rows with it that refer to its own; within a transaction this is not changed.
    connection.exec_driver_sql(f"PRAGMA foreign_keys={options.get('references', 'ON')}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writes", False) else "BEGIN")
