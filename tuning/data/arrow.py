"""Arrow tables of one source that do not fit together: a column that is a number in one file and text in another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

MISMATCH = (pa.ArrowInvalid, pa.ArrowTypeError)  # what pyarrow raises when columns of one name have types that differ


def cast_to_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as Arrow writes them."""
    return column.cast(pa.string())


def concatenated(
    tables: Sequence[pa.Table], as_text: Callable[[pa.ChunkedArray], pa.ChunkedArray] = cast_to_text
) -> pa.Table:
    """One table of several. Where the types of a column do not go together, it becomes text in all of them.

    as_text: how.
    """
    if len(tables) == 1:
        return tables[0]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except MISMATCH:
        kinds: dict[str, set[pa.DataType]] = {}
        for table in tables:
            for field in table.schema:
                kinds.setdefault(field.name, set()).add(field.type)
        mixed = [name for name, types in kinds.items() if len(types) > 1]
        return pa.concat_tables([_with_text(table, mixed, as_text) for table in tables], promote_options="permissive")


def runs_of_one_schema(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """As few tables as possible, in their order, with every column's type as it is."""
    try:
        return [pa.concat_tables(tables, promote_options="permissive")]
    except MISMATCH:
        runs: list[list[pa.Table]] = []
        for table in tables:
            if runs and runs[-1][0].schema.equals(table.schema):
                runs[-1].append(table)
            else:
                runs.append([table])
        return [pa.concat_tables(run) for run in runs]


def _with_text(
    table: pa.Table, names: Sequence[str], as_text: Callable[[pa.ChunkedArray], pa.ChunkedArray]
) -> pa.Table:
    for name in names:
        position = table.schema.get_field_index(name)
        if position >= 0:
            table = table.set_column(position, name, as_text(table.column(name)))
    return table
