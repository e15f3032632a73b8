"""Cells of a CSV: what type they get. pandas decides, from one customer's rows.

pandas gives a column one type. In a table of many customers, one customer's `n.a.?` would make text of everybody's
numbers. There the cells stay text, marked in the Arrow schema, until `typed` gives one customer's rows to the same
parser that reads a customer's own file.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from tuning.preprocessing.kinds import IS_NUMBER, nearly_numbers

ReadCsvOptions: TypeAlias = Mapping[str, Any]  # of `pandas.read_csv`

MARK = {b"tuning": b"as written"}
OF_NUMBERS = ("decimal", "thousands")  # options that say how numbers are written


def written_table(frame: pd.DataFrame, keys: Sequence[str] = ()) -> pa.Table:
    """A frame of text as a table in which all columns but the keys are marked as written."""
    columns = [pa.array(frame[name], pa.string(), from_pandas=True) for name in frame.columns]
    table = pa.Table.from_arrays(columns, names=[str(name) for name in frame.columns])
    return marked(table, [name for name in table.column_names if name not in keys])


def marked(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """The table with some of its columns, which are text, marked as written."""
    wanted = set(names)
    fields = [field.with_metadata(MARK) if field.name in wanted else field for field in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields, table.schema.metadata))


def unmarked(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """The table with some of its columns as the text that they are written as, for good."""
    wanted = set(names)
    fields = [field.remove_metadata() if field.name in wanted else field for field in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields, table.schema.metadata))


def is_marked(field: pa.Field) -> bool:
    """Whether a column's cells are still as they are written."""
    return bool(field.metadata) and MARK.items() <= field.metadata.items()


def typed(cells: pa.Table, csv: ReadCsvOptions, text: Sequence[str] = ()) -> pd.DataFrame:
    """One customer's cells with the types that they have in a CSV of its own.

    csv: the definition's options. The missing cells are known already; of the others, numbers may still mean one.
    text: columns without gaps that stay text, whatever is in them.
    """
    if not cells.num_rows:
        return cells.to_pandas()
    plain = io.BytesIO()
    pyarrow.csv.write_csv(cells, plain, pyarrow.csv.WriteOptions(include_header=False))
    plain.seek(0)
    frame = pd.read_csv(
        plain,
        header=None,
        names=cells.column_names,
        index_col=False,
        skip_blank_lines=False,  # a single column's missing cell is one
        low_memory=False,
        keep_default_na=False,
        na_values={name: ["", *csv.get("na_values", ())] for name in cells.column_names if name not in text},
        dtype=dict.fromkeys(text, str),
        **{name: csv[name] for name in OF_NUMBERS if name in csv},
    )
    return in_usual_notation(frame, csv, text)


def in_plain_notation(cells: pa.ChunkedArray, csv: ReadCsvOptions) -> pa.ChunkedArray:
    """Text with its numbers as Python writes them. csv: the definition's options, which say how they are written."""
    point, group = csv.get("decimal", "."), csv.get("thousands")
    if point == "." and group is None:
        return cells
    plain = cells if group is None else pc.replace_substring(cells, group, "")
    plain = plain if point == "." else pc.replace_substring(plain, point, ".")
    return pc.if_else(pc.match_substring_regex(plain, f"^(?:{IS_NUMBER})$"), plain, cells)


def in_usual_notation(frame: pd.DataFrame, csv: ReadCsvOptions, text: Sequence[str] = ()) -> pd.DataFrame:
    """The frame with the numbers in columns of text as Python writes them, where nearly all cells are numbers.

    text: columns that stay as they are.
    """
    point, group = csv.get("decimal", "."), csv.get("thousands")
    if point == "." and group is None:
        return frame
    found: dict[str, pd.Series] = {}
    for name, cells in frame.items():
        if name not in text and isinstance(cells.dtype, pd.StringDtype):
            plain = cells if group is None else cells.str.replace(group, "", regex=False)
            plain = plain.str.replace(point, ".", regex=False)
            numbers = plain.where(plain.str.fullmatch(IS_NUMBER).fillna(False).astype(bool), cells)
            if nearly_numbers(numbers.dropna()):
                found[str(name)] = numbers
    return frame.assign(**found)
