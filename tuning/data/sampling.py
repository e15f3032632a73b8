"""A look at a few customers before anything runs: enough to guess the task, never the whole data."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from tuning.data.customers import Customer, Customers, too_large
from tuning.data.formats.memory_frame import FrameSource
from tuning.data.keyed_tables import find_tables
from tuning.data.keys import Key, row_keys
from tuning.data.loading import OrderedRows
from tuning.data.registry import file_source
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
    """Return why no task can be guessed from a customer's target, if so."""
    target, least = definition.target or "", definition.min_rows
    if target not in frame.columns:
        return FileCode.COLUMN_ABSENT(target, role="target", columns=[*frame.columns[:11]], csv={})
    if (rows := int(frame[target].notna().sum())) < least:
        return DataCode.TOO_FEW_ROWS(rows=rows, least=least, without=len(frame) - rows)
    return None if is_comparable(frame[target]) else DataCode.LISTS(target)


def sample_frames(
    definition: Definition, customers: Customers, prepared: Callable[[pd.DataFrame, str], pd.DataFrame]
) -> SampledFrames:
    """Yield prepared rows of the largest customers, or why there are none; of large files only the first rows.

    Who is over a limit gets no model, and so no say in what is guessed for the others, nor their place here. The look
    ends where several of them cannot be looked at at all.
    """
    limits = definition.limits
    order = np.lexsort((-customers.numbers("size"), too_large(customers, limits)))
    largest = customers.take(order[:LOOKED_AT])
    rows_of = _table_rows(definition, customers, largest)
    lost = 0
    for customer in largest:
        try:
            limits.check("its table", customer.extent)
            if customer.unpartitioned:
                rows = rows_of(customer)
                limits.check("its table", replace(customer.extent, columns=rows.shape[1]))
            else:
                rows = file_source(customer.files[0], definition.csv_options).read(rows=ROWS, limits=limits)
            yield customer, prepared(rows, customer.id)
        except CustomerError as error:
            yield customer, error
            lost += isinstance(error, NotLookedAtError)
            if lost == ENOUGH:
                return


def _table_rows(definition: Definition, customers: Customers, largest: Customers) -> Callable[[Customer], pd.DataFrame]:
    """Return a function that reads customers in tables not yet divided: their rows among the first of each file.

    Rows of those of the customers that are too large do not count there. largest: those that will be asked for.
    """
    refused = customers.take(too_large(customers, definition.limits))
    heads: dict[int, OrderedRows] = {}

    def rows_of(customer: Customer) -> pd.DataFrame:
        if isinstance(definition.data, Mapping):
            return FrameSource(definition.data[customer.id]).read()
        if not definition.by:
            return FrameSource(definition.data).read()
        assert customer.key is not None
        if customer.table not in heads:
            wanted, others = (
                {each.key for each in some if each.key and each.table == customer.table} for some in (largest, refused)
            )
            tables = list(_first_rows(definition, customer.table, wanted, others))
            heads[customer.table] = OrderedRows(tables, definition.by, definition.csv_options)
        return heads[customer.table].rows(customer.key)

    return rows_of


def _first_rows(definition: Definition, number: int, keys: Set[Key], refused: Set[Key]) -> Iterator[pa.Table]:
    """Yield the first rows of the first files of a keyed table that may hold some keys; all of a frame.

    refused: keys whose rows are passed over.
    """
    table = next(table for table in find_tables(definition.data, definition.by) if table.number == number)
    parts = (part for part in table.parts(definition) if any(map(part.may_hold, keys)))
    for part in islice(parts, LOOKED_AT):
        left = ROWS if table.frame is None else sys.maxsize
        for piece in part.pieces():
            codes, found = row_keys(piece, definition.by)
            kept = np.array([key not in refused for key in found], dtype=bool)[codes]
            yield piece.filter(pa.array(kept))[:left]
            left -= int(kept.sum())
            if left <= 0:
                break
