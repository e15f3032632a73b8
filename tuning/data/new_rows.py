"""New rows of a file or a frame, a bounded number at a time, each with its customer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa

from tuning.data.column_types import concatenated
from tuning.data.files import File, is_glob
from tuning.data.keyed_tables import TablePart
from tuning.data.keys import Key, check_columns, customer_id, key_table, row_keys, rows_by_key
from tuning.definition.definition import Definition
from tuning.preprocessing.shapes import text_names

WINDOW_BYTES = 1 << 26  # of rows that are held together, as Arrow has them


@dataclass(frozen=True)
class RowsOfCustomer:
    """The rows of a customer in a window, for its model. places: theirs in it, in order."""

    customer: str
    rows: pa.Table | pd.DataFrame
    places: np.ndarray


@dataclass(frozen=True)
class Window:
    """Consecutive rows of a file, or a frame's: as they came, and by customer with what a path says of them."""

    rows: pa.Table | pd.DataFrame
    customers: tuple[RowsOfCustomer, ...]

    @property
    def names(self) -> list[str]:
        """The rows' own columns."""
        return list(map(str, self.rows.column_names if isinstance(self.rows, pa.Table) else self.rows.columns))


@dataclass(frozen=True)
class RowReader:
    """Reads new rows as a definition says.

    Attributes:
        definition: names the key columns, and how a CSV is read.
        knows: whether there is a customer of that id.
    """

    definition: Definition
    knows: Callable[[str], bool]

    def of_one(self) -> RowReader:
        """Return a reader that gives all rows to the file's customer, whatever they name."""
        return replace(self, definition=self.definition.model_copy(update={"by": ()}))

    def windows(self, file: File, most: float = WINDOW_BYTES) -> Iterator[Window]:
        """Yield all rows of a file in order: at least one window, maybe an empty one. `TuningError` says what is wrong.

        most: bytes of a window.
        """
        part = TablePart.of_file(file.path, self.definition)
        check_columns(self.definition.by, part.columns())
        held: list[tuple[pa.Table, pa.Table]] = []
        size = 0
        for rows, came in part.all_pieces():
            held.append((rows, came))
            size += came.nbytes
            if size >= most:
                yield self._window(held, file)
                held, size = [], 0
        if held:
            yield self._window(held, file)

    def _window(self, held: Sequence[tuple[pa.Table, pa.Table]], file: File) -> Window:
        by = self.definition.by
        rows, came = map(concatenated, zip(*held, strict=True))
        if not by:
            return Window(came, (RowsOfCustomer(file.id, rows, np.arange(len(rows))),) if len(rows) else ())
        found = rows_by_key(rows, by)
        rows = rows.take(pa.array(np.concatenate([np.arange(0), *(places for _, places in found)])))
        of, end = [], 0
        for name, (_, places) in zip(self._names([key for key, _ in found], file), found, strict=True):
            of.append(RowsOfCustomer(name, rows.slice(end, len(places)), places))
            end += len(places)
        return Window(came, tuple(of))

    def of_frame(self, frame: pd.DataFrame) -> Window:
        """Divide a frame's rows by customer; without key columns they belong to one, who has no name."""
        by, rows = self.definition.by, text_names(frame).reset_index(drop=True)
        if not by:
            return Window(frame, (RowsOfCustomer("", rows, np.arange(len(rows))),))
        check_columns(by, list(rows.columns))
        found = rows_by_key(key_table(rows, by), by)
        return Window(frame, tuple(RowsOfCustomer(customer_id(key), rows.iloc[at], at) for key, at in found))

    def customers_in(self, file: File) -> list[str]:
        """Return the ids of all customers of a file, for which only its key columns are read."""
        by = self.definition.by
        if not by:
            return [file.id]
        keys = (row_keys(some, by)[1] for some in TablePart.of_file(file.path, self.definition).key_pieces())
        return list(dict.fromkeys(name for some in keys for name in self._names(some, file)))

    def _names(self, keys: Sequence[Key], file: File) -> list[str]:
        """Return the customers' names: where each file of a glob was a table, its name is a part of them."""
        names, data = [customer_id(key) for key in keys], self.definition.data
        if not isinstance(data, str | list | tuple) or not is_glob(data):
            return names
        within = (f"{file.id}/{name}" for name in names)
        return [longer if self.knows(longer) else name for longer, name in zip(within, names, strict=True)]
