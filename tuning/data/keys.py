"""The values of key columns as text: what makes a customer of a row, and what that customer is called."""

from __future__ import annotations

import datetime
import decimal
import json
import re
from collections.abc import Sequence
from typing import TypeAlias
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import did_you_mean, encodable, name_list
from tuning.errors import DataError
from tuning.preprocessing.storable import storable

Key: TypeAlias = tuple[str | None, ...]

MISSING = "(missing)"
WHOLE = re.compile(r"(?:0|-?[1-9]\d*)\.0")  # what pandas writes of whole numbers in a column with gaps
HIVE_MISSING = "__HIVE_DEFAULT_PARTITION__"


def row_keys(table: pa.Table, by: Sequence[str]) -> tuple[np.ndarray, list[Key]]:
    """Return (code of each row, keys): the key of row i is `keys[codes[i]]`; keys are in order of appearance."""
    codes = np.zeros(table.num_rows, dtype=np.int64)
    columns: list[tuple[np.ndarray, list[str | None]]] = []
    for name in by:
        encoded = plain_column(table.column(name)).combine_chunks().dictionary_encode()
        if hasattr(encoded, "combine_chunks"):
            encoded = encoded.combine_chunks()
        texts = [key_text(value) for value in encoded.dictionary.to_pylist()] + [None]
        known = {text: position for position, text in reversed(list(enumerate(texts)))}
        canonical = np.array([known[text] for text in texts])
        column = canonical[encoded.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)]
        columns.append((column, texts))
        codes = codes * len(texts) + column
    unique, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(unique), dtype=np.int64)
    rank[order] = np.arange(len(unique))
    keys = [tuple(texts[column[row]] for column, texts in columns) for row in first[order]]
    return rank[inverse], keys


def rows_by_key(table: pa.Table, by: Sequence[str]) -> list[tuple[Key, np.ndarray]]:
    """Return each key with the places of its rows, in order."""
    codes, keys = row_keys(table, by)
    order = np.argsort(codes, kind="stable")
    return list(zip(keys, np.split(order, np.searchsorted(codes[order], np.arange(1, len(keys)))), strict=False))


def plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a key column without dictionary encoding; empty text is missing (CSV knows no difference)."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column).cast(pa.string())
    return column


def key_table(frame: pd.DataFrame, by: Sequence[str]) -> pa.Table:
    """Return key columns of a frame in Arrow's types; a column of mixed types is taken as `key_text`."""
    columns = []
    for name in by:
        try:
            values = frame[name] if frame[name].dtype == object else storable(frame[name])
            columns.append(pa.array(values, from_pandas=True))
        except (pa.ArrowException, OverflowError, UnicodeError):
            columns.append(pa.array([key_text(value) for value in frame[name]], pa.string()))
    return pa.table(columns, names=list(by))


def with_key_texts(frame: pd.DataFrame, by: Sequence[str], keys: pa.Table) -> pd.DataFrame:
    """Replace key columns of mixed types by their `key_table`: else a file would spell them anew."""
    mixed = [name for name in by if frame[name].dtype == object and pa.types.is_string(keys.schema.field(name).type)]
    texts = {name: keys.column(name).to_numpy() for name in mixed}
    return pd.DataFrame({**frame, **texts}, index=frame.index, copy=False) if mixed else frame


def key_text(value: object) -> str | None:
    """Return a key value as text, None when it is missing: null, NaN, or empty."""
    return None if value is None or value != value else text_of(value) or None


def text_of(value: object) -> str:
    """Return a key value as text, whatever type a file stores it in: 141, 141.0, "141" and "141.0" are one customer.

    It depends on nothing but the value: another row's key never changes what a customer is called.
    """
    if isinstance(value, str):
        text = encodable(value)
        return text[:-2] if WHOLE.fullmatch(text) else text
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, decimal.Decimal) and value.is_finite():  # 1, 1.0 and 1.00 are one number
        return f"{value.normalize() if value else decimal.Decimal(0):f}"
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value)


def key_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Apply `key_text` to each value; text that needs no change is returned itself."""
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    if pa.types.is_string(column.type) and not pc.any(pc.match_substring_regex(column, r"\.0$|^$")).as_py():
        return column
    return pa.chunked_array([[key_text(value) for value in column.to_pylist()]], pa.string())


def customer_id(key: Key) -> str:
    """Return a customer's name: the key's parts joined by `/`; two keys never share one."""
    return "/".join(_part(text, len(key) > 1) for text in key)


def customer_ids(columns: Sequence[pa.Array], prefix: str = "") -> pa.Array:
    """Apply `customer_id` to many keys, behind a prefix.

    columns: texts of the keys, an array for each key column.
    """
    names = [_parts(column, len(columns) > 1) for column in columns]
    joined = names[0] if len(names) == 1 else pc.binary_join_element_wise(*names, "/")
    return pc.binary_join_element_wise(prefix, joined, "") if prefix else joined


def key_lists(columns: Sequence[pa.Array]) -> pa.Array:
    """Return the keys as lists of texts, one for each customer. columns: as of `customer_ids`."""
    count, width = len(columns[0]), len(columns)
    order = np.arange(count * width).reshape(width, count).T.reshape(-1)
    values = columns[0] if width == 1 else pa.concat_arrays(columns).take(pa.array(order))
    return pa.ListArray.from_arrays(pa.array(np.arange(count + 1) * width, pa.int32()), values)


def look_alikes(ids: pa.ChunkedArray) -> list[list[str]]:
    """Return groups of ids that differ only in case, in blanks at the ends of their parts or in their Unicode form."""
    plain = pc.replace_substring_regex(pc.utf8_lower(pc.utf8_normalize(ids, "NFKC")), r"\s*/\s*", "/")
    table = pa.table({"plain": pc.utf8_trim_whitespace(plain), "id": ids})
    groups = table.group_by("plain", use_threads=False).aggregate([("id", "list"), ("id", "count")])
    found: list[list[str]] = groups.filter(pc.greater(groups["id_count"], 1))["id_list"].to_pylist()
    return found


def _parts(column: pa.Array, several: bool) -> pa.Array:
    """Return the texts as parts of names."""
    odd = rf'^"|^{re.escape(MISSING)}$' + ("|/" if several else "")
    if not column.null_count and not pc.any(pc.match_substring_regex(column, odd)).as_py():
        return column
    return pa.array([_part(text, several) for text in column.to_pylist()], pa.string())


def _part(text: str | None, several: bool) -> str:
    if text is None:
        return MISSING
    if text == MISSING or text.startswith('"') or (several and "/" in text):
        return json.dumps(text, ensure_ascii=False)
    return text


def hive_values(path: str) -> dict[str, str | None]:
    """Return the columns that a path spells out, as in `…/zone=141/part-0.parquet`."""
    found: dict[str, str | None] = {}
    for segment in path.split("/")[:-1]:
        name, equals, value = segment.partition("=")
        if equals and name:
            found[unquote(name)] = None if value == HIVE_MISSING else unquote(value)
    return found


def check_columns(by: Sequence[str], names: Sequence[str]) -> None:
    """Refuse key columns that are not there."""
    absent = [name for name in by if name not in names]
    if absent:
        shown, hint = name_list(names) or "none", did_you_mean(absent[0], names)
        raise DataError(f"by: the column {', '.join(map(repr, absent))} is not in the data.{hint} There are {shown}.")
