"""Cells of a CSV of many customers: kept as they are written, and given a type with each customer's own rows.

pandas gives a column one type, so one customer's `n.a.?` would make text of everybody's numbers. Such columns stay
text, marked in the Arrow schema, until a customer's rows are read.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tuning.preprocessing.kinds import nearly_numbers

Options: TypeAlias = Mapping[str, object]  # of `pandas.read_csv`

MARK = {b"tuning": b"as written"}
TRUE, FALSE = ("True", "TRUE", "true"), ("False", "FALSE", "false")  # as pandas.read_csv has them


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


def is_marked(field: pa.Field) -> bool:
    """Whether a column's cells are still as they are written."""
    return bool(field.metadata) and MARK.items() <= field.metadata.items()


def typed(column: pa.ChunkedArray, csv: Options) -> pa.ChunkedArray:
    """One customer's column with the type that `pandas.read_csv` finds in a file of its rows alone.

    csv: the definition's options of `pandas.read_csv`, of which the signs in numbers count.
    """
    present = column.drop_null()
    if not len(present):
        return pa.chunked_array([pa.nulls(len(column), pa.float64())])
    if present[0].as_py() in TRUE + FALSE and set(present.unique().to_pylist()) <= {*TRUE, *FALSE}:
        return pc.if_else(column.is_null(), pa.scalar(None, pa.bool_()), pc.is_in(column, value_set=pa.array(TRUE)))
    if not _are_numbers(present[:1], csv)[0].as_py():
        return column
    if _usual(csv) and not pc.any(pc.match_substring(column, "x")).as_py():  # Arrow reads 0x10, pandas does not
        try:
            return _numbers(column, csv)
        except pa.ArrowInvalid:
            pass  # a sign in front or a blank beside, or text
    if pc.all(_are_numbers(column, csv)).as_py():
        return _numbers(_plain(column, csv), csv)
    return column


def plain_numbers(column: pa.ChunkedArray, csv: Options) -> pa.ChunkedArray:
    """Text of which nearly all are numbers, with these in the usual notation, whatever the definition's is."""
    if _usual(csv):
        return column
    plain = pc.if_else(_are_numbers(column, csv), _plain(column, csv), column)
    return plain if nearly_numbers(plain.drop_null().to_pandas()) else column


def _usual(csv: Options) -> bool:
    """Whether numbers are written as Python does."""
    return csv.get("decimal", ".") == "." and csv.get("thousands") is None


def _are_numbers(column: pa.ChunkedArray, csv: Options) -> pa.ChunkedArray:
    point, group = re.escape(str(csv.get("decimal", "."))), re.escape(str(csv.get("thousands") or ""))
    digits = rf"[\d{group}]*\d[\d{group}]*" if group else r"\d+"
    number = rf"[+-]?(?:(?:{digits})(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"
    return pc.match_substring_regex(column, rf"^\s*(?:{number}|[+-]?(?i:inf(?:inity)?))\s*$")


def _plain(column: pa.ChunkedArray, csv: Options) -> pa.ChunkedArray:
    """Numbers as Python writes them."""
    if group := csv.get("thousands"):
        column = pc.replace_substring(column, str(group), "")
    if (point := str(csv.get("decimal", "."))) != ".":
        column = pc.replace_substring(column, point, ".")
    return pc.utf8_ltrim(pc.utf8_trim_whitespace(column), "+")


def _numbers(plain: pa.ChunkedArray, csv: Options) -> pa.ChunkedArray:
    """Whole numbers where all are, else float64, or `ArrowInvalid`; those that the definition calls missing are."""
    numbers = _cast(plain)
    given = csv.get("na_values")
    missing = [float(text) for text in given if _is_number(text)] if isinstance(given, list | tuple) else []
    if not missing:
        return numbers
    return pc.if_else(pc.is_in(numbers.cast(pa.float64(), safe=False), value_set=pa.array(missing)), None, numbers)


def _cast(plain: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers of the first type that holds all; the attempts that fail are the ones that take long."""
    if re.fullmatch(r"-?\d+", plain.drop_null()[0].as_py()):
        try:
            return plain.cast(pa.int64())
        except pa.ArrowInvalid:
            pass
        if pc.all(pc.match_substring_regex(plain, r"^-?\d+$")).as_py():
            with contextlib.suppress(pa.ArrowInvalid):
                return plain.cast(pa.uint64())
    return plain.cast(pa.float64())


def _is_number(text: object) -> bool:
    try:
        float(str(text))
    except ValueError:
        return False
    return True
