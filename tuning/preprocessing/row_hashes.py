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
from tuning.preprocessing.storable import storable

START, TRUE, FALSE = np.uint64(0x27D4EB2F165667C5), np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
WORDS = {"True": TRUE, "TRUE": TRUE, "true": TRUE, "False": FALSE, "FALSE": FALSE, "false": FALSE}  # of a CSV


def row_hashes(rows: pd.DataFrame | pa.Table) -> np.ndarray:
    """Return (n,) 64 bits for each row, independent of the order of columns; equal rows have equal ones."""
    columns = rows.items() if isinstance(rows, pd.DataFrame) else zip(rows.column_names, rows.columns, strict=True)
    total = np.full(len(rows), START, dtype=np.uint64)
    for name, values in columns:
        values = pa.array(storable(values), from_pandas=True) if isinstance(values, pd.Series) else values
        total += _of_values(values) * _of_name(str(name))
    return mixed(total)


def mixed(values: np.ndarray) -> np.ndarray:
    """Stir the 64 bits of each value, so that each depends on all (the finalizer of splitmix64)."""
    found = values ^ (values >> np.uint64(30))
    found *= np.uint64(0xBF58476D1CE4E5B9)
    found ^= found >> np.uint64(27)
    found *= np.uint64(0x94D049BB133111EB)
    found ^= found >> np.uint64(31)
    return found


@lru_cache(maxsize=4096)
def _of_name(name: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.sha256(encodable(name).encode()).digest()[:8], "little") | 1)


def _of_values(values: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Hash (n,) values of one type; 0 where one is missing."""
    if isinstance(values, pa.ChunkedArray):
        return np.concatenate([np.zeros(0, dtype=np.uint64), *map(_of_values, values.chunks)])
    kind, types = values.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _of_values(values.storage)
    if types.is_dictionary(kind):
        return _of_distinct(values.indices.cast(pa.int64()), _of_values(values.dictionary))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return _of_numbers(values.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False))
    if types.is_boolean(kind) or types.is_temporal(kind):
        found = _of_flags(values) if types.is_boolean(kind) else _of_moments(values)
        found[np.asarray(values.is_null())] = 0
        return found
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        texts = (None if value is None else encodable(str(value)) for value in values.to_pylist())
        values = pa.array(texts, pa.string())
    encoded = values.cast(pa.string()).dictionary_encode()
    return _of_distinct(encoded.indices, _of_texts(encoded.dictionary))


def _of_distinct(codes: pa.Array, of_each: np.ndarray) -> np.ndarray:
    """Return (n,) hashes by those of the distinct values."""
    return np.append(of_each, np.uint64(0))[codes.fill_null(len(of_each)).to_numpy(zero_copy_only=False)]


def _of_numbers(values: np.ndarray) -> np.ndarray:
    found = pd.util.hash_array(values + 0.0) + FALSE  # -0.0 is 0.0, and neither is missing
    found[np.isnan(values)] = 0
    return found


def _of_flags(values: pa.Array) -> np.ndarray:
    return np.where(np.asarray(values.fill_null(False)), TRUE, FALSE)


def _of_moments(values: pa.Array) -> np.ndarray:
    """Hash (n,) microseconds, with a salt that tells moments, durations and times apart."""
    kinds = ((pa.types.is_duration, pa.duration("us"), 2), (pa.types.is_time, pa.time64("us"), 3))
    moment = pa.timestamp("us", getattr(values.type, "tz", None))
    kind, salt = next(((kind, salt) for fits, kind, salt in kinds if fits(values.type)), (moment, 1))
    plain = values.cast(kind, safe=False).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return mixed(plain.view(np.uint64) + TRUE * np.uint64(salt))


def _of_texts(texts: pa.StringArray) -> np.ndarray:
    """Hash (n,) different texts; those that read as numbers, or as truth values in a CSV, as such."""
    read = pc.match_substring_regex(texts, f"^(?:{IS_NUMBER})$")
    plain = pc.if_else(read, pc.utf8_ltrim(pc.utf8_trim_whitespace(texts), "+"), None).cast(pa.float64())
    found = pd.util.hash_array(texts.to_numpy(zero_copy_only=False).astype(object), categorize=False)
    number = np.asarray(read)
    found[number] = _of_numbers(plain.fill_null(np.nan).to_numpy(zero_copy_only=False))[number]
    for place in np.flatnonzero(np.asarray(pc.is_in(texts, pa.array(WORDS)))):
        found[place] = WORDS[texts[int(place)].as_py()]
    return found
