"""Frames in memory as Arrow tables, whatever is in their columns."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from tuning.basics.wording import raised
from tuning.data.table_source import check_names
from tuning.errors import CustomerError
from tuning.notes import FileCode
from tuning.preprocessing.storable import arrow_type, storable


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    """A frame in types that Parquet holds; others become numbers or text. `CustomerError` says what is wrong."""
    check_names(list(frame.columns), "the frame")
    frame = frame.copy(deep=False)
    frame.attrs = {}  # would have to be JSON
    try:
        for name in frame.columns:
            frame[name] = storable(frame[name])
        return pa.Table.from_pandas(frame, preserve_index=False)
    except Exception as error:  # of a type that somebody else has made
        raise CustomerError(FileCode.UNWRITABLE(error=raised(error).rstrip("."))) from error


def is_mixed(frame: pd.DataFrame) -> bool:
    """Whether a column holds Python objects of several types, so that it is not the same for all customers."""
    return any(
        values.dtype == object and (pd.api.types.infer_dtype(values).startswith("mixed") or arrow_type(values) is None)
        for _, values in frame.items()
    )
