"""Rows of new files, a bounded number at a time, and which of them are whose."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from tuning.data.column_types import concatenated
from tuning.data.files import file_ids, find_files, is_glob
from tuning.data.keyed_tables import with_columns
from tuning.data.keys import Key, check_columns, customer_id, hive_values, key_table, row_keys
from tuning.data.registry import file_source
from tuning.data.table_source import Piece
from tuning.definition.definition import Definition
from tuning.preprocessing.columns import text_names
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


def windows(file: NewFile, models: CustomerModels, by: Sequence[str], most: float = WINDOW_BYTES) -> Iterator[Window]:
    """All rows of a file in order, at least one window, maybe an empty one. `TuningError`: what is wrong with it.

    by: the columns that name each row's customer; without any it is the file's. most: bytes of a window.
    """
    outside = hive_values(without_query(file.path))
    source = file_source(file.path, models.definition.csv_options)
    inside = [name for name in by if name not in outside]
    check_columns(inside, source.columns())
    held: list[tuple[Piece, pa.Table]] = []
    size = 0
    for piece, came in source.pieces_as_written(inside):
        held.append((piece, came))
        size += came.nbytes
        if size >= most:
            yield _window(held, file, models, by, outside)
            held, size = [], 0
    if held:
        yield _window(held, file, models, by, outside)


def window_of_frame(frame: pd.DataFrame, by: Sequence[str]) -> Window:
    """A frame's rows; without key columns they are one customer's, who has no name."""
    rows = text_names(frame).reset_index(drop=True)
    if not by:
        return Window(frame, (RowsOfCustomer("", rows, np.arange(len(rows))),))
    check_columns(by, list(rows.columns))
    keys, order, bounds = _by_customer(key_table(rows, by), by)
    places = (order[start:stop] for start, stop in itertools.pairwise(bounds))
    of = zip(map(customer_id, keys), places, strict=True)
    return Window(frame, tuple(RowsOfCustomer(name, rows.iloc[where], where) for name, where in of))


def customers_in(file: NewFile, models: CustomerModels) -> list[str]:
    """The ids of all customers of a file, for which only its key columns are read."""
    definition, outside = models.definition, hive_values(without_query(file.path))
    if not definition.by:
        return [file.id]
    source = file_source(file.path, definition.csv_options)
    found: dict[str, None] = {}
    for block in source.key_blocks([name for name in definition.by if name not in outside]):
        keys = with_columns(block.keys, {name: outside[name] for name in definition.by if name in outside})
        found |= dict.fromkeys(_names(row_keys(keys, definition.by)[1], file, models))
    return list(found)


def _window(
    held: Sequence[tuple[Piece, pa.Table]],
    file: NewFile,
    models: CustomerModels,
    by: Sequence[str],
    outside: dict[str, str | None],
) -> Window:
    came = concatenated([table for _, table in held])
    whole = with_columns(concatenated([piece.rows for piece, _ in held]), outside)
    if not by:
        of = (RowsOfCustomer(file.id, whole, np.arange(len(came))),) if len(came) else ()
        return Window(came, of)
    found, order, bounds = _by_customer(
        with_columns(
            concatenated([piece.keys for piece, _ in held]), {name: outside[name] for name in by if name in outside}
        ),
        by,
    )
    whole = whole.take(pa.array(order))
    return Window(
        came,
        tuple(
            RowsOfCustomer(name, whole.slice(start, stop - start), order[start:stop])
            for name, (start, stop) in zip(_names(found, file, models), itertools.pairwise(bounds), strict=True)
        ),
    )


def _by_customer(keys: pa.Table, by: Sequence[str]) -> tuple[list[Key], np.ndarray, np.ndarray]:
    """(keys, the rows ordered by these, where each key's rows begin and the last one's end)."""
    codes, found = row_keys(keys, by)
    order = np.argsort(codes, kind="stable")
    return found, order, np.searchsorted(codes[order], np.arange(len(found) + 1))


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
