"""The rows that were not there before: blocks that are those of last time are not read."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext, suppress
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tuning.data.column_types import runs_of_one_schema
from tuning.data.customers import Customers
from tuning.data.loading import OrderedRows
from tuning.data.row_digests import HashedRows, Part, Remembered, parts_of
from tuning.data.table_source import Piece
from tuning.definition.definition import Definition
from tuning.errors import CustomerError


def new_rows(
    definition: Definition, customers: Customers, remembered: pa.Table, wanted: Mapping[str, np.ndarray]
) -> OrderedRows | None:
    """The new rows of customers by their ids, in the order of their tables; None where no file is another one.

    Of a customer's own file that cannot be read there are none; `CustomerError` where a table of several cannot.

    remembered: the rows of last time, as of `rows_now`. wanted: by customer the hashes of its new rows, each as often
    as there are rows with it; the first ones are taken.
    """
    known, wishes = Remembered.of(definition, remembered), _Wishes(wanted)
    tables, codes = list[pa.Table](), list[np.ndarray]()
    for part in parts_of(definition, customers):
        with nullcontext() if part.customer is None else suppress(CustomerError):  # nobody else's are in its own file
            for block in known.other_blocks(part):
                for piece in part.pieces(block, definition.needed_of):
                    found, whose = wishes.granted(part, piece)
                    tables.append(found)
                    codes.append(whose)
    if not tables:
        return None
    runs, names, of_rows = runs_of_one_schema(tables), list(wanted), np.concatenate(codes)
    parts = []
    for run, place in zip(runs, pairwise(np.cumsum([0, *map(len, runs)])), strict=True):
        here, own = np.unique(of_rows[slice(*place)], return_inverse=True)
        parts.append((run, own, [names[code] for code in here]))
    return OrderedRows(parts, definition.csv_options)


class _Wishes:
    """Which rows are still to be found. A row is told by its hash and its customer in 64 bits."""

    def __init__(self, wanted: Mapping[str, np.ndarray]) -> None:
        self._codes = {name: code for code, name in enumerate(wanted)}
        of_each = [_marked(hashes, np.uint64(code)) for code, hashes in enumerate(wanted.values())]
        self._marks, self._left = np.unique(np.concatenate([np.zeros(0, np.uint64), *of_each]), return_counts=True)

    def granted(self, part: Part, piece: Piece) -> tuple[pa.Table, np.ndarray]:
        """A piece's rows that were still wanted, and the position of each one's customer."""
        each = HashedRows.of(part, piece)
        codes = np.array([self._codes.get(name, -1) for name in each.ids], dtype=np.int64)[each.own]
        rows = np.flatnonzero(each.known & (codes >= 0))
        marks = _marked(each.hashes[rows], codes[rows].astype(np.uint64))
        place = np.minimum(np.searchsorted(self._marks, marks), max(0, len(self._marks) - 1))
        hit = self._marks[place] == marks if len(self._marks) else np.zeros(len(rows), dtype=bool)
        rows, place = rows[hit], place[hit]
        order = np.argsort(place, kind="stable")
        ordered = place[order]
        number = np.empty(len(order), dtype=np.int64)  # the how many-th of its equals each row is
        number[order] = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        taken = number < self._left[place]
        rows = rows[taken]
        np.subtract.at(self._left, place[taken], 1)
        return piece.rows.take(rows), codes[rows]


def _marked(hashes: np.ndarray, codes: np.ndarray | np.uint64) -> np.ndarray:
    with np.errstate(over="ignore"):
        return hashes + (codes + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
