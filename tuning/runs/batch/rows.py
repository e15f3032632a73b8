"""Rows of new files, a bounded number at a time, and which of them are whose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from tuning.data.column_types import concatenated
from tuning.data.files import file_ids, find_files, is_glob
from tuning.data.keyed_tables import TablePart
from tuning.data.keys import check_columns, customer_id, key_table, row_keys, rows_by_key
from tuning.data.table_source import Piece
from tuning.definition.definition import Definition
from tuning.preprocessing.shapes import text_names
from tuning.runs.batch.models import CustomerModels
from tuning.storage.names import without_query

WINDOW_BYTES = 1 << 26  # of rows that are held together, as Arrow has them


@dataclass(frozen=True)
class NewFile:
    """A file of new rows.

    Attributes:
        path: absolute, or a URI.
        id: the customer that it would be.
        name: of what is written for it: the same, with the file's suffix.
    """

    path: str
    id: str
    name: str


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


def new_files(data: str | Sequence[str]) -> list[NewFile]:
    """The files that a glob, folder or path means, in order; `DataError` where there are none."""
    files = find_files(data)
    names = [without_query(file.path).rpartition("/")[2] for file in files]
    ids = file_ids(files)
    endings = (name[len(each.rpartition("/")[2]) :] for name, each in zip(names, ids, strict=True))
    return [NewFile(file.path, each, f"{each}{ending}") for file, each, ending in zip(files, ids, endings, strict=True)]


def windows(
    file: NewFile, models: CustomerModels, most: float = WINDOW_BYTES, *, alone: bool = False
) -> Iterator[Window]:
    """All rows of a file in order, at least one window, maybe an empty one. `TuningError`: what is wrong with it.

    most: bytes of a window. alone: all rows are the file's customer's, whatever they name.
    """
    definition = models.definition.model_copy(update={"by": ()}) if alone else models.definition
    part = TablePart.of_file(file.path, definition)
    check_columns(definition.by, part.columns())
    held: list[tuple[Piece, pa.Table]] = []
    size = 0
    for piece, came in part.pieces_as_written():
        held.append((piece, came))
        size += came.nbytes
        if size >= most:
            yield _window(held, file, models, definition.by)
            held, size = [], 0
    if held:
        yield _window(held, file, models, definition.by)


def window_of_frame(frame: pd.DataFrame, by: Sequence[str]) -> Window:
    """A frame's rows; without key columns they are one customer's, who has no name."""
    rows = text_names(frame).reset_index(drop=True)
    if not by:
        return Window(frame, (RowsOfCustomer("", rows, np.arange(len(rows))),))
    check_columns(by, list(rows.columns))
    found = rows_by_key(key_table(rows, by), by)
    return Window(frame, tuple(RowsOfCustomer(customer_id(key), rows.iloc[places], places) for key, places in found))


def customers_in(file: NewFile, models: CustomerModels) -> list[str]:
    """The ids of all customers of a file, for which only its key columns are read."""
    by = models.definition.by
    if not by:
        return [file.id]
    blocks = TablePart.of_file(file.path, models.definition).key_blocks()
    return list(dict.fromkeys(name for block in blocks for name in _names(row_keys(block.keys, by)[1], file, models)))


def _window(held: Sequence[tuple[Piece, pa.Table]], file: NewFile, models: CustomerModels, by: Sequence[str]) -> Window:
    came = concatenated([table for _, table in held])
    rows = concatenated([piece.rows for piece, _ in held])
    if not by:
        return Window(came, (RowsOfCustomer(file.id, rows, np.arange(len(rows))),) if len(rows) else ())
    found = rows_by_key(concatenated([piece.keys for piece, _ in held]), by)
    rows = rows.take(pa.array(np.concatenate([np.arange(0), *(places for _, places in found)])))
    of, end = [], 0
    for name, (_, places) in zip(_names([key for key, _ in found], file, models), found, strict=True):
        of.append(RowsOfCustomer(name, rows.slice(end, len(places)), places))
        end += len(places)
    return Window(came, tuple(of))


def _names(keys: Sequence[tuple[str | None, ...]], file: NewFile, models: CustomerModels) -> list[str]:
    """What customers are called: where each file of a glob was a table, its name is a part of theirs."""
    names = [customer_id(key) for key in keys]
    if not _by_file(models.definition):
        return names
    within = (f"{file.id}/{name}" for name in names)
    return [longer if models.knows(longer) else name for longer, name in zip(within, names, strict=True)]


def _by_file(definition: Definition) -> bool:
    data = definition.data
    return isinstance(data, str | list | tuple) and is_glob(data)
