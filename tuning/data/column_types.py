"""From Arrow to frames: the types that a customer's rows get, and tables of one source that do not fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import pyarrow as pa

from tuning.data.cells import ReadCsvOptions, is_marked, marked, typed

MISMATCH = (pa.ArrowInvalid, pa.ArrowTypeError)  # what pyarrow raises when columns of one name have types that differ


def to_frame(table: pa.Table, csv: ReadCsvOptions | None = None) -> pd.DataFrame:
    """Return one customer's rows as a frame: cells as written get types, decimals are numbers, UTF-8 bytes are text.

    csv: the definition's options of `pandas.read_csv`.
    """
    cells = [field.name for field in table.schema if is_marked(field)]
    if cells:
        found, others = typed(table.select(cells), csv or {}), to_frame(table.drop_columns(cells))
        return pd.DataFrame({name: (found if name in found else others)[name] for name in table.column_names})
    table = with_sound_text(table)
    columns = [_plain(table.column(number), field) for number, field in enumerate(table.schema)]
    fields = [
        field if column.type == field.type else pa.field(field.name, column.type)
        for column, field in zip(columns, table.schema, strict=True)
    ]
    # What pandas has noted about the types may be wrong of bytes, which it then takes for text.
    known = None if any(pa.types.is_binary(column.type) for column in columns) else table.schema.metadata
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, known)).to_pandas(use_threads=False)


def exact_frame(table: pa.Table) -> pd.DataFrame:
    """Return a frame of which `to_arrow` makes the same rows: whole numbers with gaps and decimals are objects."""
    odd = any(pa.types.is_binary(kind) for kind in table.schema.types)  # as in `to_frame`
    return (table.replace_schema_metadata(None) if odd else table).to_pandas(integer_object_nulls=True)


def to_one_frame(table: pa.Table) -> pd.DataFrame | None:
    """Return rows of many customers as one frame, each slice of which equals `to_frame` of one customer's rows.

    None where a customer's types may depend on its rows: cells as written, gaps in whole numbers, dates and the like.
    """
    if not all(map(_is_typed_alone, table.schema, table.columns)) or not _numbers_rows(table.schema.pandas_metadata):
        return None
    return to_frame(table)


def _is_typed_alone(field: pa.Field, column: pa.ChunkedArray) -> bool:
    """Return whether pandas' type of a column is known without its values."""
    if is_marked(field):
        return False
    whole = pa.types.is_integer(field.type) or pa.types.is_boolean(field.type)
    return pa.types.is_floating(field.type) or pa.types.is_string(field.type) or (whole and not column.null_count)


def _numbers_rows(of_pandas: Mapping[str, object] | None) -> bool:
    """Return whether rows get numbers from 0 on as their index, however many they are."""
    index = (of_pandas or {}).get("index_columns", [])
    plain = {"kind": "range", "name": None, "start": 0, "step": 1}
    return isinstance(index, list) and all(isinstance(one, dict) and plain.items() <= one.items() for one in index)


def with_sound_text(table: pa.Table) -> pa.Table:
    """Return the table with text that is not UTF-8 as bytes, and views of text as text.

    Not everybody who writes Parquet looks whether it is UTF-8, and whoever reads a cell of it fails. Arrow does little
    with views.
    """
    for position, field in enumerate(table.schema):
        view = pa.types.is_string_view(field.type)
        if view or pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = table.column(position)
            try:
                column.validate(full=True)
                column = column.cast(pa.string()) if view else column
            except pa.ArrowInvalid:
                column = column.cast(pa.binary_view() if view else pa.binary()).cast(pa.binary())
            if column.type != field.type:
                table = table.set_column(position, pa.field(field.name, column.type), column)
    return table


def _plain(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    kind = field.type
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        try:
            return column.cast(pa.string())
        except pa.ArrowInvalid:  # no UTF-8: nobody's text
            return column
    return column


def cast_to_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values as Arrow writes them, as Python does where Arrow cannot."""
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.chunked_array([[None if value is None else str(value) for value in column.to_pylist()]], pa.string())


def concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables. A column with types that do not go together is taken as written in all of them."""
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
        texts = [with_text(table, mixed) for table in tables]
        return marked(pa.concat_tables(texts, promote_options="permissive"), mixed).replace_schema_metadata(None)


def runs_of_one_schema(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Concatenate neighbours of one schema: as few tables as possible, in order, with every column's type as it is."""
    runs: list[list[pa.Table]] = []
    for table in tables:
        if runs and _kinds(runs[-1][0].schema) == _kinds(table.schema):
            runs[-1].append(table)
        else:
            runs.append([table])
    return [pa.concat_tables(run) for run in runs]


def _kinds(schema: pa.Schema) -> list[tuple[object, ...]]:
    """Return what must agree for two tables to be one: names, types and types of pandas, not row numbers."""
    of_pandas = {
        column["field_name"]: column["numpy_type"] for column in (schema.pandas_metadata or {}).get("columns", ())
    }
    return [(field.name, field.type, is_marked(field), of_pandas.get(field.name)) for field in schema]


def with_text(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the table with some of its columns as text, where it has them."""
    for name in names:
        position = table.schema.get_field_index(name)
        if position >= 0:
            table = table.set_column(position, name, cast_to_text(table.column(name)))
    return table
