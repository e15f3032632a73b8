"""Many rows into one table. A row that is already there is overwritten or stays as it is, and never is an error:
a second writer may be at work at the same moment."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TypeVar

from sqlalchemy import ARRAY, Connection, Table, bindparam, func, select
from sqlalchemy.dialects import postgresql, sqlite

Insert = TypeVar("Insert", sqlite.Insert, postgresql.Insert)

Value = str | int | float | bool | None
Row = tuple[Value, ...]


def insert(
    connection: Connection,
    table: Table,
    columns: Sequence[str],
    rows: Sequence[Row],
    replace: Sequence[str] = (),
) -> None:
    """Insert rows (values in the order of `columns`) inside the connection's transaction.

    replace: columns that are overwritten in a row that is already there; without any, that row stays as it is.
    """
    if not rows:
        return
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
