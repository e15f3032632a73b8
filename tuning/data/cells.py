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

from tuning.preprocessing.notations import IS_NUMBER, nearly_dates, nearly_numbers

ReadCsvOptions: TypeAlias = Mapping[str, Any]  # of `pandas.read_csv`, and `LABELS`

LABELS = "labels"  # names of columns that may hold classes
MARK = {b"tuning": b"as written"}
OF_NUMBERS = ("decimal", "thousands")  # options that say how numbers are written
MINUS = "\u2212"  # the sign of typesetting, which Python does not read
#: Words for a missing value, as the documentation of pandas.read_csv lists them: among numbers, truth values and dates.
WORDS = (
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL",
    "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip


def written_table(frame: pd.DataFrame, keys: Sequence[str] = ()) -> pa.Table:
    """Return a frame of text as a table in which all columns but the keys are marked as written."""
    columns = [pa.array(frame[name], pa.string(), from_pandas=True) for name in frame.columns]
    table = pa.Table.from_arrays(columns, names=[str(name) for name in frame.columns])
    return marked(table, [name for name in table.column_names if name not in keys])


def marked(table: pa.Table, names: Iterable[str], mark: Mapping[bytes, bytes] = MARK) -> pa.Table:
    """Mark some columns of text as written; with an empty mark they are text for good."""
    wanted = set(names)
    fields = [field.with_metadata(mark) if field.name in wanted else field for field in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields, table.schema.metadata))


def is_marked(field: pa.Field) -> bool:
    """Return whether a column's cells are still as they are written."""
    return bool(field.metadata) and MARK.items() <= field.metadata.items()


def missing_texts(csv: ReadCsvOptions) -> list[str]:
    """Return the texts that are missing whatever else a column holds: an empty cell, and those that the user names."""
    return list(dict.fromkeys(("", *csv.get("na_values", ()))))


def with_missing(rows: pa.Table, csv: ReadCsvOptions) -> pa.Table:
    """Return rows with null in each missing cell, without an index that has no name."""
    missing = pa.array(missing_texts(csv))
    for number, field in enumerate(rows.schema):
        if is_marked(field):
            cells = rows.column(number)
            rows = rows.set_column(number, field, pc.if_else(pc.is_in(cells, missing), None, cells))
    nameless = [name for name in rows.column_names if not name.strip()]
    return rows.drop_columns(nameless) if nameless else rows


def typed(cells: pa.Table, csv: ReadCsvOptions) -> pd.DataFrame:
    """Return one customer's cells with the types that they have in a CSV of its own. csv: the definition's options."""
    if not cells.num_rows:
        return cells.to_pandas()
    return with_gaps(_parsed(cells, csv), csv)


def _parsed(cells: pa.Table, csv: ReadCsvOptions) -> pd.DataFrame:
    plain = io.BytesIO()
    pyarrow.csv.write_csv(cells, plain, pyarrow.csv.WriteOptions(include_header=False))
    plain.seek(0)
    return pd.read_csv(
        plain,
        header=None,
        names=cells.column_names,
        index_col=False,
        skip_blank_lines=False,  # a single column's missing cell is one
        low_memory=False,
        keep_default_na=False,
        na_values=missing_texts(csv),
        **{name: csv[name] for name in OF_NUMBERS if name in csv},
    )


def in_plain_notation(cells: pa.Array | pa.ChunkedArray, csv: ReadCsvOptions) -> pa.Array | pa.ChunkedArray:
    """Return text with its numbers as Python writes them. csv: the definition's options say how they are written."""
    point, group = csv.get("decimal", "."), csv.get("thousands")
    minus = _has_minus(cells)
    if point == "." and group is None and not minus:
        return cells
    plain = pc.replace_substring(cells, MINUS, "-") if minus else cells
    plain = plain if group is None else pc.replace_substring(plain, group, "")
    plain = plain if point == "." else pc.replace_substring(plain, point, ".")
    return pc.if_else(pc.match_substring_regex(plain, f"^(?:{IS_NUMBER})$"), plain, cells)


def _has_minus(cells: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether a minus is written as typesetting does."""
    return bool(pc.any(pc.match_substring(cells, MINUS)).as_py())


def with_gaps(frame: pd.DataFrame, csv: ReadCsvOptions) -> pd.DataFrame:
    """Return a parsed frame in which words for missing values are gaps among numbers, truth values and dates.

    Among other text they are text. Numbers among a few mistakes are text as Python writes them.
    """
    found = frame.copy(deep=False)
    for name, kind in frame.dtypes.items():
        if isinstance(kind, pd.StringDtype):
            cells = pa.array(frame[name], pa.string(), from_pandas=True)
            if (read := _with_gaps(cells, csv, label=name in csv.get(LABELS, ()))) is not None:
                found[name] = read.set_axis(frame.index)
    return found


def _with_gaps(cells: pa.Array, csv: ReadCsvOptions, *, label: bool) -> pd.Series | None:
    """Return one column; None where it stays text. label: it holds classes, so a single word may be that of all."""
    words = pc.is_in(cells, pa.array(() if "" in csv.get("na_values", ()) else WORDS, pa.string()))
    some = pc.any(words).as_py()
    if not (some or {*OF_NUMBERS} & {*csv} or _has_minus(cells)):
        return None
    rest = pc.if_else(words, None, cells)
    read = _parsed(pa.table({"": rest}), csv)[""]
    if not isinstance(read.dtype, pd.StringDtype):
        return None if label and read.isna().all() else read
    plain = pa.table({"": in_plain_notation(rest, csv)})
    if nearly_numbers(plain.to_pandas()[""].dropna()):
        return _parsed(plain, {})[""]
    return read if some and nearly_dates(rest.unique().drop_null().to_pylist()) else None
