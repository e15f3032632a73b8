"""Frames in memory as Arrow tables, whatever is in their columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tuning.basics.wording import raised
from tuning.data.table_source import check_names
from tuning.errors import CustomerError
from tuning.notes import FileCode

SAFE = "biumM"  # kinds of numpy's types that Arrow always has


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    """A frame in types that Parquet holds; others become numbers or text. `CustomerError` says what is wrong."""
    check_names(list(frame.columns), "the frame")
    frame = frame.copy(deep=False)
    frame.attrs = {}  # would have to be JSON
    try:
        for name in frame.columns:
            if not _is_safe(frame[name]):
                frame[name] = _storable(frame[name])
        return pa.Table.from_pandas(frame, preserve_index=False)
    except Exception as error:  # of a type that somebody else has made
        raise CustomerError(FileCode.UNWRITABLE(error=raised(error).rstrip("."))) from error


def is_mixed(frame: pd.DataFrame) -> bool:
    """Whether a column holds Python objects of several types, so that it is not the same for all customers."""
    return any(
        values.dtype == object and (pd.api.types.infer_dtype(values).startswith("mixed") or _arrow_type(values) is None)
        for _, values in frame.items()
    )


def _is_safe(values: pd.Series) -> bool:
    return isinstance(values.dtype, np.dtype) and values.dtype.kind in SAFE and values.dtype.isnative


def _storable(values: pd.Series) -> pd.Series:
    if isinstance(values.dtype, pd.SparseDtype):
        values = values.sparse.to_dense()
    if isinstance(values.dtype, np.dtype) and not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder())
    kind = _arrow_type(values)
    if kind is not None and _in_parquet(kind):
        return values
    if pd.api.types.infer_dtype(values) in ("integer", "floating", "mixed-integer-float"):
        try:
            return values.astype("float64")  # whole numbers from 2^63 on
        except (TypeError, ValueError, OverflowError):
            pass
    return values.astype(object).map(_text, na_action="ignore")


def _arrow_type(values: pd.Series) -> pa.DataType | None:
    """What Arrow makes of a column; None when it cannot."""
    try:
        return pa.array(values, from_pandas=True).type
    except Exception:  # pyarrow has an exception for each way in which values do not fit
        return None


def _in_parquet(kind: pa.DataType) -> bool:
    """Whether Parquet holds the type so that pandas gets it back."""
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
