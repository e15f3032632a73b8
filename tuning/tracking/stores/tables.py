"""The tables of an MLflow database: read from the database itself, and filled with many rows at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TypeVar

from sqlalchemy import ARRAY, Connection, Engine, MetaData, Table, bindparam, func, select
from sqlalchemy.dialects import postgresql, sqlite

Insert = TypeVar("Insert", sqlite.Insert, postgresql.Insert)

Value = str | int | float | bool | None
Row = tuple[Value, ...]

# What the bulk writer needs: table → columns. Rows have their values in this order.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "experiments": (
        *("experiment_id", "name", "artifact_location", "lifecycle_stage", "creation_time", "last_update_time"),
    ),
    "experiment_tags": ("experiment_id", "key", "value"),
    "runs": (
        *("run_uuid", "name", "source_type", "source_name", "entry_point_name", "user_id", "status", "start_time"),
        *("end_time", "source_version", "lifecycle_stage", "artifact_uri", "experiment_id"),
    ),
    "params": ("run_uuid", "key", "value"),
    "metrics": ("run_uuid", "key", "step", "timestamp", "value", "is_nan"),
    "latest_metrics": ("run_uuid", "key", "step", "timestamp", "value", "is_nan"),
    "tags": ("run_uuid", "key", "value"),
}


class OtherTablesError(Exception):
    """The tables are not those that the bulk writer can fill; says what is missing."""


def read_tables(engine: Engine) -> Mapping[str, Table]:
    """The tables of `COLUMNS`, as they are in the database.

    Raises `OtherTablesError` when one lacks a column, or has one that must have a value of which we know nothing.
    """
    found = MetaData()
    found.reflect(engine, only=lambda name, _: name in COLUMNS, resolve_fks=False)
    problems = []
    for name, needed in COLUMNS.items():
        there = {column.name: column for column in found.tables[name].columns} if name in found.tables else {}
        problems += [f"{name}.{column} is missing" for column in needed if column not in there]
        problems += [
            f"{name}.{column.name} must have a value"
            for column in there.values()
            if column.name not in needed and not column.nullable and column.server_default is None
        ]
    if problems:
        raise OtherTablesError(", ".join(problems))
    return found.tables


def insert(connection: Connection, table: Table, rows: Sequence[Row], replace: Sequence[str] = ()) -> None:
    """Insert rows (values in the order of `COLUMNS`) inside the connection's transaction.

    A row that is already there is no error, because a second writer may be at work at the same moment.

    replace: columns that are overwritten in a row that is already there; without any, that row stays as it is.
    """
    if not rows:
        return
    columns = COLUMNS[table.name]
    if connection.dialect.name == "sqlite":
        # Past SQLAlchemy's handling of values, which takes longer than SQLite itself.
        text = _or_replace(sqlite.insert(table), table, replace).compile(
            dialect=connection.dialect, column_keys=list(columns)
        )
        places = [columns.index(name) for name in text.positiontup or ()]
        connection.exec_driver_sql(str(text), list(map(itemgetter(*places), rows)))
    else:
        # One statement with an array for each column: rows one by one take ten times as long.
        arrays = [func.unnest(bindparam(name, type_=ARRAY(table.c[name].type))) for name in columns]
        statement = _or_replace(postgresql.insert(table).from_select(list(columns), select(*arrays)), table, replace)
        connection.execute(statement, dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))


def _or_replace(new: Insert, table: Table, replace: Sequence[str]) -> Insert:
    """What becomes of a row whose key is there already."""
    key = list(table.primary_key.columns)
    if not replace:
        return new.on_conflict_do_nothing(index_elements=key)
    return new.on_conflict_do_update(index_elements=key, set_={name: new.excluded[name] for name in replace})
