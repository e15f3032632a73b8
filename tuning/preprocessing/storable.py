"""Columns in memory as a file gives them back, so that new rows in a frame are what the rows of the search were."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

SAFE = "biumM"  # kinds of numpy's types that Arrow always has


def storable(values: pd.Series) -> pd.Series:
    """Return a column in a type that Parquet holds; bytes that are UTF-8 are text, others become numbers or text."""
    if isinstance(values.dtype, np.dtype) and values.dtype.isnative and values.dtype.kind in SAFE:
        return values
    if isinstance(values.dtype, pd.SparseDtype):
        values = values.sparse.to_dense()
    if isinstance(values.dtype, np.dtype) and not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder())
    kind = arrow_type(values)
    if kind is not None and pa.types.is_dictionary(kind) and _is_odd(values.dtype, kind.value_type):
        kind, values = kind.value_type, values.astype(object)
    if kind is not None and pa.types.is_binary(kind):
        return _decoded(values)
    if kind is not None and _in_parquet(kind):
        return values
    if pd.api.types.infer_dtype(values) in ("integer", "floating", "mixed-integer-float"):
        try:
            return values.astype("float64")  # whole numbers from 2^63 on
        except (TypeError, ValueError, OverflowError):
            pass
    return values.astype(object).map(_text, na_action="ignore")


def arrow_type(values: pd.Series) -> pa.DataType | None:
    """Return what Arrow makes of a column; None when it cannot."""
    try:
        return pa.array(values, from_pandas=True).type
    except Exception:  # pyarrow has an exception for each way in which values do not fit
        return None


def _is_odd(dtype: object, categories: pa.DataType) -> bool:
    """Return whether a file would not give categories back: bytes, and those of Arrow's own type in pandas."""
    return isinstance(dtype, pd.ArrowDtype) or pa.types.is_binary(categories)


def _decoded(values: pd.Series) -> pd.Series:
    try:
        texts = pa.array(values, pa.binary(), from_pandas=True).cast(pa.string())
    except pa.ArrowInvalid:  # no UTF-8: nobody's text
        return values
    return pd.Series(texts.to_pandas().array, index=values.index, name=values.name)


def _in_parquet(kind: pa.DataType) -> bool:
    """Return whether Parquet holds the type so that pandas gets it back."""
    if pa.types.is_dictionary(kind):
        return _in_parquet(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):  # intervals and periods
        return False
    if pa.types.is_nested(kind):
        try:
            pq.write_table(pa.table({"": pa.nulls(0, kind)}), pa.BufferOutputStream())
        except pa.ArrowException:
            return False
    return True


def _text(value: object) -> str | None:
    try:
        return str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    except Exception:  # an object that cannot even say what it is
        return None
