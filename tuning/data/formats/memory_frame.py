"""A pandas frame in memory. No worker sees it, so its rows are written into files of the run first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd
import pyarrow as pa

from tuning.basics.wording import raised
from tuning.data.keys import key_table, rows_by_key, with_key_texts
from tuning.data.table_source import ColumnChoice, TableSource, all_columns, check_names, check_present
from tuning.errors import CustomerError
from tuning.notes import FileCode
from tuning.preprocessing.storable import arrow_type, storable


class FrameSource(TableSource):
    """A frame. Its types are its own, but for what Arrow cannot hold, which becomes numbers or text."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    @property
    def named(self) -> str:
        return "the frame"

    def columns(self) -> list[str]:
        return [str(name) for name in self.frame.columns]

    def pieces(self, keys: Sequence[str] = (), choose: ColumnChoice = all_columns) -> Iterator[pa.Table]:
        """Yield one piece; where a column has no single type, a piece per customer, whose own rows decide."""
        check_present(keys, self.columns())
        chosen = choose(self.columns())
        keys_of = key_table(self.frame, keys)
        frame = with_key_texts(self.frame, keys, keys_of)
        frame = frame if chosen is None else frame[list(chosen)]
        if not keys or not is_mixed(frame):
            yield to_arrow(frame)
            return
        for _, rows in rows_by_key(keys_of, keys):
            yield to_arrow(frame.iloc[rows])

    @property
    def size(self) -> int:
        """Bytes."""
        return int(self.frame.memory_usage(deep=False).sum())


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    """Convert a frame to types that Parquet holds; others become numbers or text. `CustomerError` where it cannot."""
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
    """Return whether a column holds objects of several types, so that its type depends on the customer."""
    return any(
        values.dtype == object and (pd.api.types.infer_dtype(values).startswith("mixed") or arrow_type(values) is None)
        for _, values in frame.items()
    )
