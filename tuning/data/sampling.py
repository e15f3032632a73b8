"""A look at a few customers before anything runs: enough to guess the task, never the whole data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from tuning.data.arrow_frames import to_arrow
from tuning.data.column_types import concatenated, to_frame
from tuning.data.customers import Customer, Customers, too_large
from tuning.data.formats.memory_frame import FrameSource
from tuning.data.keyed_tables import find_tables
from tuning.data.keys import Key, key_table, row_keys
from tuning.data.loading import Loader
from tuning.data.prepared import OwnCode
from tuning.data.registry import file_source
from tuning.data.table_source import Piece
from tuning.errors import CustomerError, NotLookedAtError
from tuning.notes import DataCode, FileCode, Note
from tuning.preprocessing.task import is_comparable

if TYPE_CHECKING:
    import pandas as pd

    from tuning.definition.definition import Definition

ENOUGH = 5  # customers with a usable target
LOOKED_AT = 20  # customers at most
ROWS = 100_000  # of a file
FIRST_ROWS = 5000  # of a customer, kept with its target


@dataclass(frozen=True)
class TargetSample:
    """The targets of some of the largest customers.

    Attributes:
        targets: by customer, where it has enough rows with a target.
        reason: why one of the others has none; None when there are no others.
        whole: whether these are all customers that have a usable target, with all of their rows.
        frames: the first of the rows that have these targets.
    """

    targets: Mapping[str, pd.Series]
    reason: Note | None = None
    whole: bool = False
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def names(self) -> str:
        """Whose targets they are, as in `customers 'a', 'b'`."""
        return f"customer{'s' if len(self.targets) > 1 else ''} {', '.join(map(repr, self.targets))}"


#: Customers with their prepared rows, or why there are none.
SampledFrames: TypeAlias = "Iterator[tuple[Customer, pd.DataFrame | CustomerError]]"


def sample_target(definition: Definition, customers: Customers, frames: SampledFrames) -> TargetSample:
    """Look at the target of the largest customers, until enough of them have a usable one.

    frames: as `sample_frames` gives them.
    """
    target = definition.target
    found: dict[str, pd.Series] = {}
    first_rows: dict[str, pd.DataFrame] = {}
    reason: Note | None = None
    whole = len(customers) <= LOOKED_AT and definition.prepare is None
    for number, (customer, frame) in enumerate(frames, start=1):
        if isinstance(frame, CustomerError):
            reason = FileCode.OF_CUSTOMER(customer.id, why=frame.note)
            continue
        whole = whole and (len(frame) < ROWS if customer.rows is None else len(frame) == customer.rows)
        if why := _unusable(frame, definition):
            reason = FileCode.OF_CUSTOMER(customer.id, why=why)
        else:
            found[customer.id] = frame[target]
            first_rows[customer.id] = frame[:FIRST_ROWS]
            if len(found) == ENOUGH:
                whole = whole and number == len(customers)
                break
    return TargetSample(found, reason, whole, first_rows)


def _unusable(frame: pd.DataFrame, definition: Definition) -> Note | None:
    """Why no task can be guessed from a customer's target, if so."""
    target, least = definition.target or "", definition.min_rows
    if target not in frame.columns:
        return FileCode.COLUMN_ABSENT(target, role="target", columns=[*frame.columns[:11]], csv={})
    if (rows := int(frame[target].notna().sum())) < least:
        return DataCode.TOO_FEW_ROWS(rows=rows, least=least, without=len(frame) - rows)
    return None if is_comparable(frame[target]) else DataCode.LISTS(target)


def sample_frames(definition: Definition, customers: Customers, code: OwnCode) -> SampledFrames:
    """Prepared rows of the largest customers, or why there are none; of large files only the first rows.

    Who is over a limit gets no model, and so no say in what is guessed for the others, nor their place here. The look
    ends where several of them cannot be looked at at all.
    """
    unpartitioned, limits = _unpartitioned_rows(definition, customers), definition.limits
    order = np.lexsort((-customers.numbers("size"), too_large(customers, limits)))
    largest = customers.take(order[:LOOKED_AT])
    lost = 0
    for customer in largest:
        try:
            limits.check("its table", customer.extent)
            if customer.unpartitioned:
                rows = unpartitioned(customer)
                limits.check("its table", replace(customer.extent, columns=rows.shape[1]))
            elif customer.key is None:
                rows = file_source(customer.files[0], definition.csv_options).read(rows=ROWS, limits=limits)
            else:
                rows = Loader(definition, [customer]).read(customer)
            yield customer, code.frame(rows, customer.id)
        except CustomerError as error:
            yield customer, error
            lost += isinstance(error, NotLookedAtError)
            if lost == ENOUGH:
                return


def _unpartitioned_rows(definition: Definition, customers: Customers) -> Callable[[Customer], pd.DataFrame]:
    """A function that gives rows of customers in tables that have no order yet: those among the first of each file.

    Rows of those of the customers that are too large do not count there.
    """
    refused: dict[int, set[Key]] = {}
    for each in customers.take(too_large(customers, definition.limits)):
        if each.key:
            refused.setdefault(each.table, set()).add(each.key)
    heads: dict[int, list[_Head]] = {}

    def rows_of(customer: Customer) -> pd.DataFrame:
        if isinstance(definition.data, Mapping):
            return FrameSource(definition.data[customer.id]).read()
        if not definition.by:
            return FrameSource(definition.data).read()
        assert customer.key is not None
        if customer.table not in heads:
            heads[customer.table] = list(_heads(definition, customer.table, refused.get(customer.table, set())))
        found = [head.of(customer.key) for head in heads[customer.table]]
        return to_frame(concatenated([rows for rows in found if len(rows)] or found[:1]), definition.csv_options)

    return rows_of


@dataclass(frozen=True)
class _Head:
    """The first rows of a part of a keyed table, or all of a frame.

    Attributes:
        codes, keys: whose rows they are, as of `row_keys`.
    """

    rows: pa.Table | pd.DataFrame
    codes: np.ndarray
    keys: list[Key]

    def of(self, key: Key) -> pa.Table:
        """A customer's rows; of a frame in the types that they have without those of others."""
        wanted = self.codes == (self.keys.index(key) if key in self.keys else -1)
        return self.rows.filter(pa.array(wanted)) if isinstance(self.rows, pa.Table) else to_arrow(self.rows[wanted])


def _heads(definition: Definition, number: int, refused: Set[Key]) -> Iterator[_Head]:
    """The first rows of each of the first parts of a keyed table.

    refused: keys whose rows are passed over.
    """
    by = definition.by
    table = next(table for table in find_tables(definition.data, by) if table.number == number)
    if table.frame is not None:
        yield _Head(table.frame, *row_keys(key_table(table.frame, by), by))
        return
    for part in islice(table.parts(definition), LOOKED_AT):
        rows, keys = [], []
        count = 0
        for piece in part.pieces():
            kept = _without_keys(refused, piece, by)
            rows.append(kept.rows)
            keys.append(kept.keys)
            count += kept.rows.num_rows
            if count >= ROWS:
                break
        yield _Head(concatenated(rows)[:ROWS], *row_keys(concatenated(keys)[:ROWS], by))


def _without_keys(refused: Set[Key], piece: Piece, by: Sequence[str]) -> Piece:
    """A piece without the rows of some keys."""
    if not refused:
        return piece
    codes, keys = row_keys(piece.keys, by)
    kept = pa.array(np.array([key not in refused for key in keys], dtype=bool)[codes])
    return Piece(piece.rows.filter(kept), piece.keys.filter(kept))
