"""What every format of data can do: `TableSource` is one table of rows, whatever holds it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, ClassVar, TypeAlias

import pandas as pd
import pyarrow as pa

from tuning.data.cells import ReadCsvOptions
from tuning.data.column_types import concatenated, to_frame
from tuning.data.file_access import file_name
from tuning.definition.customer_limits import UNLIMITED, Extent, Limits
from tuning.errors import CustomerError
from tuning.notes import FileCode

ColumnChoice: TypeAlias = Callable[[Sequence[str]], Sequence[str] | None]  # of a table's names, None for all

PIECE_ROWS = 1 << 17  # of a table that is read piece by piece


def all_columns(_: Sequence[str]) -> None:
    """Choose all columns."""


class TableSource(ABC):
    """One table of rows: a file, or a frame in memory.

    Everything that is wrong with the data is a `CustomerError`, a sentence that names the file and the way out. Cells
    that have no type of their own (in a CSV) are text in Arrow tables, marked by `tuning.data.cells.marked`; they get
    types when one customer's rows become a frame (`tuning.data.column_types.to_frame`).
    """

    @property
    @abstractmethod
    def named(self) -> str:
        """The table, for messages."""

    @abstractmethod
    def columns(self) -> list[str]:
        """Return the names of the columns, from the header alone."""

    def read(self, *, rows: int | None = None, limits: Limits = UNLIMITED) -> pd.DataFrame:
        """Read the rows as one customer's frame.

        Args:
            rows: stop after as many.
            limits: a larger table is an error, whatever `rows` is; checked as soon as something is known of its size.
        """
        names = self.columns()
        check_names(names, self.named)
        limits.check(self.named, Extent(columns=len(names)))
        found: list[pa.Table] = []
        count = 0
        for piece in self.pieces():
            if rows is None or count < rows:
                found.append(piece)
            count += piece.num_rows
            limits.check(self.named, Extent(count, len(names), whole=False))
            if rows is not None and count >= rows and limits is UNLIMITED:
                break
        return to_frame(concatenated(found)[:rows])

    @abstractmethod
    def pieces(self, keys: Sequence[str] = (), choose: ColumnChoice = all_columns) -> Iterator[pa.Table]:
        """Yield the rows in order, so that a table may be larger than memory: at least one piece, maybe an empty one.

        A piece has at most `PIECE_ROWS` rows, and no more of the file is in memory than that and what is read ahead
        (of a format of record batches, one of them), however well the file is compressed: `tests/runs/test_memory.py`.
        Its types are ones that Parquet holds and whose rows can be taken, which views inside lists are not. Where cells
        have no type, all are the text that they are written as, also missing ones and an index without a name.

        Args:
            keys: columns that say whose row it is; they are never marked.
            choose: says which columns are wanted, in the table's order, the keys among them; it may choose none.
        """


class FileSource(TableSource):
    """A table that is a file, on any filesystem; a new format is a subclass in a file of `tuning/data/formats/`.

    Around all reading are `reading_errors` and `opened`; text passes `with_sound_text`, names `check_names` and
    `check_present`. `columns`, `pieces` and `write` are all that a format must have; the rest of
    `tuning/data/formats/parquet_file.py`, the shortest example, makes it faster.

    Attributes:
        title: the format's name, for messages.
        suffixes: how its files' names end, in lower case, the one that is recommended first.
        path: absolute, or a URI.
        csv: the definition's options of `pandas.read_csv`, for formats made of text.
    """

    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]

    def __init__(self, path: str, csv: ReadCsvOptions) -> None:
        self.path = path
        self.csv = csv

    @property
    def named(self) -> str:
        return f"the file {file_name(self.path)}"

    @abstractmethod
    def write(self, stream: BinaryIO, tables: Iterable[pa.Table]) -> None:
        """Write tables of one schema as such a file, piece by piece, into a stream that stays open."""


def check_names(names: Sequence[str], what: str) -> None:
    """Refuse doubled and empty column names. what: the file or frame, for the message."""
    if len(set(names)) < len(names):
        doubled = Counter(names).most_common(1)[0][0]
        raise CustomerError(FileCode.DOUBLED_COLUMN(doubled, what=what))
    if any(not name.strip() for name in names):
        number = next(number for number, name in enumerate(names, start=1) if not name.strip())
        raise CustomerError(FileCode.NAMELESS_COLUMN(number=number, what=what))


def check_present(wanted: Sequence[str], names: Sequence[str]) -> None:
    """Refuse columns that a table does not have."""
    absent = [name for name in wanted if name not in names]
    if absent:
        raise CustomerError(FileCode.COLUMN_ABSENT(absent[0], role="column", columns=[*names][:11], csv={}))
