"""64 bits for each row: what a stable split and the digests of rows know a row by.

They depend on the row alone, not on what other rows make of its columns. A number is hashed as a float, whether its
column is of whole numbers, of others (one with a gap) or of text (one with an odd cell: 7, 7.0 and 007 are one);
text by its characters, a moment by its instant. A missing value adds nothing, so neither does a column without values.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
import numbers
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import encodable
from tuning.preprocessing.notations import IS_NUMBER

TRUE, FALSE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
WORDS = {"True": TRUE, "TRUE": TRUE, "true": TRUE, "False": FALSE, "FALSE": FALSE, "false": FALSE}  # of a CSV
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
MICROSECONDS = PER_SECOND["us"]
IN_A_DAY = 86_400 * MICROSECONDS


def row_hashes(rows: pd.DataFrame | pa.Table) -> np.ndarray:
    """(n,) 64 bits for each row, independent of the order of columns; equal rows have equal ones."""
    is_frame = isinstance(rows, pd.DataFrame)
    count = len(rows) if is_frame else rows.num_rows
    total = np.full(count, 0x27D4EB2F165667C5, dtype=np.uint64)
    for position, name in enumerate(rows.columns if is_frame else rows.column_names):
        hashed = _of_series(rows.iloc[:, position]) if is_frame else _of_chunks(rows.column(position))
        total += hashed * _of_name(str(name))
    return mixed(total)


def mixed(values: np.ndarray) -> np.ndarray:
    """(n,) the 64 bits of each value, stirred so that each depends on all (the finalizer of splitmix64)."""
    found = values ^ (values >> np.uint64(30))
    found *= np.uint64(0xBF58476D1CE4E5B9)
    found ^= found >> np.uint64(27)
    found *= np.uint64(0x94D049BB133111EB)
    found ^= found >> np.uint64(31)
    return found


@lru_cache(maxsize=4096)
def _of_name(name: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.sha256(encodable(name).encode()).digest()[:8], "little") | 1)


def _of_series(values: pd.Series) -> np.ndarray:
    """(n,) a column of a frame, whatever is in it."""
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iuf":
        return _of_numbers(values.to_numpy(dtype=np.float64))
    try:
        return _of_array(pa.array(values, from_pandas=True))
    except (pa.ArrowException, OverflowError, TypeError, UnicodeError, ValueError, AttributeError):
        return _of_objects(list(values))


def _of_chunks(column: pa.ChunkedArray) -> np.ndarray:
    chunks = [_of_array(chunk) for chunk in column.chunks]
    return chunks[0] if len(chunks) == 1 else np.concatenate([*chunks, np.zeros(0, dtype=np.uint64)])


def _of_array(values: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """(n,) values of one type; 0 where one is missing."""
    if isinstance(values, pa.ChunkedArray):
        return _of_chunks(values)
    kind, types = values.type, pa.types
    if types.is_null(kind):
        return np.zeros(len(values), dtype=np.uint64)
    if isinstance(kind, pa.BaseExtensionType):
        return _of_array(values.storage)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        plain = values.cast(pa.float64(), safe=False)
        return _of_numbers(plain.fill_null(np.nan).to_numpy(zero_copy_only=False))
    if types.is_boolean(kind):
        found = np.where(values.fill_null(False).to_numpy(zero_copy_only=False), TRUE, FALSE)
        return _without_missing(found, values)
    if types.is_timestamp(kind):
        return _without_missing(_of_moments(values.cast(pa.int64()), kind.unit, 1), values)
    if types.is_date(kind):
        days = values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
        return _without_missing(_of_moments(pc.multiply(days, IN_A_DAY), "us", 1), values)
    if types.is_duration(kind):
        return _without_missing(_of_moments(values.cast(pa.int64()), kind.unit, 2), values)
    if types.is_time(kind):
        plain = values.cast(pa.int32() if types.is_time32(kind) else pa.int64()).cast(pa.int64())
        return _without_missing(_of_moments(plain, kind.unit, 3), values)
    if types.is_dictionary(kind):
        return _of_dictionary(values)
    if types.is_string_view(kind) or types.is_large_string(kind):
        values = values.cast(pa.string())
    if types.is_binary_view(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        values = values.cast(pa.binary())
    if types.is_string(values.type) or types.is_binary(values.type):
        return _of_dictionary(values.dictionary_encode())
    return _of_objects(values.to_pylist())


def _without_missing(found: np.ndarray, values: pa.Array) -> np.ndarray:
    if values.null_count:
        found[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def _of_numbers(values: np.ndarray) -> np.ndarray:
    found = pd.util.hash_array(values + 0.0) + FALSE  # -0.0 is 0.0, and neither is missing
    found[np.isnan(values)] = 0
    return found


def _of_moments(values: pa.Array, unit: str, salt: int) -> np.ndarray:
    """(n,) whole numbers of a unit of time, alike in all units. salt: what tells durations from moments."""
    plain = values.fill_null(0).to_numpy(zero_copy_only=False)
    per_second = PER_SECOND[unit]
    if per_second <= MICROSECONDS:
        whole, rest = plain * (MICROSECONDS // per_second), np.zeros(len(plain), dtype=np.int64)
    else:
        whole, rest = np.divmod(plain, per_second // MICROSECONDS)
    return mixed(whole.view(np.uint64) + TRUE * np.uint64(salt) + mixed(rest.view(np.uint64)))


def _of_dictionary(values: pa.DictionaryArray) -> np.ndarray:
    distinct = values.dictionary
    kind = distinct.type
    if pa.types.is_string(kind):
        of_each = _of_texts(distinct)
    elif pa.types.is_binary(kind):
        of_each = _of_bytes(distinct.to_pylist())
    else:
        of_each = _of_array(distinct)
    of_each = np.append(of_each, np.uint64(0))
    return of_each[values.indices.cast(pa.int64()).fill_null(len(distinct)).to_numpy(zero_copy_only=False)]


def _of_texts(texts: pa.StringArray) -> np.ndarray:
    """(n,) different texts; those that read as numbers are hashed as such."""
    found = np.zeros(len(texts), dtype=np.uint64)
    is_number = pc.match_substring_regex(texts, f"^(?:{IS_NUMBER})$").fill_null(False)
    read, others = texts.filter(is_number), texts.filter(pc.invert(is_number))
    where = is_number.to_numpy(zero_copy_only=False)
    if len(read):
        plain = pc.utf8_ltrim(pc.utf8_trim_whitespace(read), "+")
        found[where] = _of_numbers(plain.cast(pa.float64()).to_numpy(zero_copy_only=False))
    if len(others):
        of_others = _of_bytes(others.to_numpy(zero_copy_only=False))
        word = pc.index_in(others, value_set=pa.array(WORDS)).fill_null(-1).to_numpy(zero_copy_only=False)
        of_others[word >= 0] = np.array(list(WORDS.values()))[word[word >= 0]]
        found[~where] = of_others
    return _without_missing(found, texts)


def _of_bytes(values: Sequence[object]) -> np.ndarray:
    return pd.util.hash_array(np.array(values, dtype=object), categorize=False)


def _of_objects(values: Sequence[object]) -> np.ndarray:
    """(n,) values of any types, each hashed by its own."""
    found = np.zeros(len(values), dtype=np.uint64)
    places: dict[str, list[int]] = {}
    plain: dict[str, list[object]] = {}
    for place, value in enumerate(values):
        kind, known = _plain(value)
        if kind:
            places.setdefault(kind, []).append(place)
            plain.setdefault(kind, []).append(known)
    for kind, known in plain.items():
        found[places[kind]] = _of_array(pa.array(known, pa.timestamp("us") if kind == "moment" else None))
    return found


def _plain(value: object) -> tuple[str, object]:
    """A value in a type that Arrow has, and what it is; no kind where it is missing."""
    if value is None or value is pd.NaT or value is pd.NA:
        return "", None
    if isinstance(value, bool | np.bool_):
        return "truth", bool(value)
    if isinstance(value, numbers.Real | decimal.Decimal):
        try:
            return "number", float(value)
        except (OverflowError, ValueError):
            return "text", str(value)
    if isinstance(value, str):
        return "text", encodable(value)
    if isinstance(value, bytes):
        return "bytes", value
    if isinstance(value, datetime.date | np.datetime64):
        try:
            moment = pd.Timestamp(value)
            return ("", None) if moment is pd.NaT else ("moment", moment.as_unit("us").value)
        except (ValueError, OverflowError):
            return "text", str(value)
    return "other", _shown(value)


def _shown(value: object) -> str:
    """Anything else as text; lists of several types of containers are alike."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{_shown(key)}: {_shown(each)}" for key, each in value.items())) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        shown = [_shown(each) for each in value]
        return "[" + ", ".join(shown if isinstance(value, list | tuple) else sorted(shown)) + "]"
    try:
        return ascii(value)
    except Exception:  # an object that cannot even say what it is
        return type(value).__name__
