"""A pandas frame in memory. No worker sees it, so its rows are written into files of the run first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from tuning.data.arrow_frames import is_mixed, to_arrow
from tuning.data.keys import key_table, rows_by_key, with_key_texts
from tuning.data.table_source import (
    ColumnChoice,
    Piece,
    TableSource,
    all_columns,
    check_present,
)


class FrameSource(TableSource):
    """A frame. Its types are its own, but for what Arrow cannot hold, which becomes numbers or text."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    @property
    def named(self) -> str:
        return "the frame"

    def columns(self) -> list[str]:
        return [str(name) for name in self.frame.columns]

    def pieces(self, keys: Sequence[str] = (), choose: ColumnChoice = all_columns) -> Iterator[Piece]:
        """One piece; where a column is not of one type, a piece per customer, whose own rows decide."""
        check_present(keys, self.columns())
        chosen = choose(self.columns())
        keys_of = key_table(self.frame, keys)
        frame = with_key_texts(self.frame, keys, keys_of)
        frame = frame if chosen is None else frame[list(chosen)]
        if not keys or not is_mixed(frame):
            yield Piece(to_arrow(frame), keys_of)
            return
        for _, rows in rows_by_key(keys_of, keys):
            yield Piece(to_arrow(frame.iloc[rows]), keys_of.take(rows))

    @property
    def size(self) -> int:
        """Bytes."""
        return int(self.frame.memory_usage(deep=False).sum())
