"""64 bits for each row: what a stable split and the digests of tables know a row by.

They depend on the row alone, not on what other rows make of its columns. A number is hashed as a float, whether its
column is of whole numbers, of others (one with a gap) or of text (one with an odd cell: 7, 7.0 and 007 are one);
text by its characters, a moment by its microsecond. A missing value adds nothing, so neither does a column without
values.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import encodable
from tuning.preprocessing.notations import IS_NUMBER

TRUE, FALSE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
WORDS = {"True": TRUE, "TRUE": TRUE, "true": TRUE, "False": FALSE, "FALSE": FALSE, "false": FALSE}  # of a CSV


def row_hashes(rows: pd.DataFrame | pa.Table) -> np.ndarray:
    """(n,) 64 bits for each row, independent of the order of columns; equal rows have equal ones."""
    is_frame = isinstance(rows, pd.DataFrame)
    count = len(rows) if is_frame else rows.num_rows
    total = np.full(count, 0x27D4EB2F165667C5, dtype=np.uint64)
    for position, name in enumerate(rows.columns if is_frame else rows.column_names):
        hashed = _of_series(rows.iloc[:, position]) if is_frame else _of_array(rows.column(position))
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
        return _of_array(pa.array([_text(value) for value in values], pa.string()))  # of several types


def _of_array(values: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """(n,) values of one type; 0 where one is missing."""
    if isinstance(values, pa.ChunkedArray):
        return np.concatenate([np.zeros(0, dtype=np.uint64), *map(_of_array, values.chunks)])
    kind, types = values.type, pa.types
    if types.is_null(kind):
        return np.zeros(len(values), dtype=np.uint64)
    if isinstance(kind, pa.BaseExtensionType):
        return _of_array(values.storage)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        plain = values.cast(pa.float64(), safe=False)
        return _of_numbers(plain.fill_null(np.nan).to_numpy(zero_copy_only=False))
    if types.is_boolean(kind):
        return _present(np.where(values.fill_null(False).to_numpy(zero_copy_only=False), TRUE, FALSE), values)
    if types.is_timestamp(kind) or types.is_date(kind):
        return _present(_of_moments(values.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False), 1), values)
    if types.is_duration(kind):
        return _present(_of_moments(values.cast(pa.duration("us"), safe=False), 2), values)
    if types.is_time(kind):
        return _present(_of_moments(values.cast(pa.time64("us"), safe=False), 3), values)
    if types.is_dictionary(kind):
        of_each = np.append(_of_array(values.dictionary), np.uint64(0))
        codes = values.indices.cast(pa.int64()).fill_null(len(values.dictionary))
        return of_each[codes.to_numpy(zero_copy_only=False)]
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        encoded = values.cast(pa.string()).dictionary_encode()
        of_each = np.append(_of_texts(encoded.dictionary), np.uint64(0))
        return of_each[encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)]
    return _of_array(pa.array([_text(value) for value in values.to_pylist()], pa.string()))


def _present(found: np.ndarray, values: pa.Array) -> np.ndarray:
    if values.null_count:
        found[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def _of_numbers(values: np.ndarray) -> np.ndarray:
    found = pd.util.hash_array(values + 0.0) + FALSE  # -0.0 is 0.0, and neither is missing
    found[np.isnan(values)] = 0
    return found


def _of_moments(values: pa.Array, salt: int) -> np.ndarray:
    """(n,) microseconds. salt: what tells durations from moments."""
    plain = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return mixed(plain.view(np.uint64) + TRUE * np.uint64(salt))


def _of_texts(texts: pa.StringArray) -> np.ndarray:
    """(n,) different texts; those that read as numbers are hashed as such."""
    found = np.zeros(len(texts), dtype=np.uint64)
    is_number = pc.match_substring_regex(texts, f"^(?:{IS_NUMBER})$").fill_null(False)
    where = is_number.to_numpy(zero_copy_only=False)
    read = texts.filter(is_number)
    if len(read):
        plain = pc.utf8_ltrim(pc.utf8_trim_whitespace(read), "+")
        found[where] = _of_numbers(plain.cast(pa.float64()).to_numpy(zero_copy_only=False))
    others = texts.filter(pc.invert(is_number))
    if len(others):
        of_others = pd.util.hash_array(others.to_numpy(zero_copy_only=False).astype(object), categorize=False)
        word = pc.index_in(others, value_set=pa.array(WORDS)).fill_null(-1).to_numpy(zero_copy_only=False)
        of_others[word >= 0] = np.array(list(WORDS.values()))[word[word >= 0]]
        found[~where] = of_others
    return _present(found, texts)


def _text(value: object) -> str | None:
    """A value of a column of several types, or of one that has no type of its own here."""
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bytes):
        return value.hex()
    try:
        return encodable(str(value.tolist() if isinstance(value, np.ndarray) else value))
    except Exception:  # an object that cannot even say what it is
        return type(value).__name__
