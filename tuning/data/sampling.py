"""A look at a few customers before anything runs: enough to guess the task, never the whole data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tuning.data.as_written import written_table
from tuning.data.column_types import concatenated, to_frame
from tuning.data.customers import Customer, Customers
from tuning.data.frames import to_arrow
from tuning.data.keyed_tables import find_tables
from tuning.data.keys import Key, hive_values, key_table, row_keys
from tuning.data.loading import Loader, check_size
from tuning.data.prepared import OwnCode
from tuning.data.reading import check_names, is_parquet, read_frame, read_pieces
from tuning.errors import CustomerError, NotLookedAtError
from tuning.preprocessing.task import is_comparable
from tuning.wording import did_you_mean, name_list

if TYPE_CHECKING:
    import pandas as pd

    from tuning.definition.definition import Definition

ENOUGH = 5  # customers with a usable target
LOOKED_AT = 20  # customers at most
ROWS = 100_000  # of a file


@dataclass(frozen=True)
class TargetSample:
    """The targets of some of the largest customers.

    Attributes:
        targets: by customer, where it has enough rows with a target.
        reason: why the others have none, with an example; empty when there are no others.
        whole: whether these are all customers that have a usable target, with all of their rows.
    """

    targets: Mapping[str, pd.Series]
    reason: str = ""
    whole: bool = False

    @property
    def names(self) -> str:
        """Whose targets they are, as in `customers 'a', 'b'`."""
        return f"customer{'s' if len(self.targets) > 1 else ''} {', '.join(map(repr, self.targets))}"


def sample_target(definition: Definition, customers: Customers, code: OwnCode) -> TargetSample:
    """A look at the target of the largest customers, until enough of them have a usable one."""
    target = definition.target
    found: dict[str, pd.Series] = {}
    reason = "there is no customer"
    whole = len(customers) <= LOOKED_AT and definition.prepare is None
    for number, (customer, frame) in enumerate(sample_frames(definition, customers, code), start=1):
        if isinstance(frame, CustomerError):
            reason = f"customer {customer.id!r}: {frame}"
            continue
        whole = whole and (len(frame) < ROWS if customer.rows is None else len(frame) == customer.rows)
        if target not in frame.columns:
            hint = did_you_mean(target, frame.columns)
            reason = f"customer {customer.id!r} has no column {target!r}.{hint} There are {name_list(frame.columns)}"
        elif frame[target].notna().sum() < definition.min_rows:
            reason = f"customer {customer.id!r} has fewer than {definition.min_rows} rows with a target {target!r}"
        elif not is_comparable(frame[target]):
            reason = f"customer {customer.id!r} has lists or the like in its target {target!r}"
        else:
            found[customer.id] = frame[target]
            if len(found) == ENOUGH:
                whole = whole and number == len(customers)
                break
    return TargetSample(found, reason, whole)


def sample_frames(
    definition: Definition, customers: Customers, code: OwnCode
) -> Iterator[tuple[Customer, pd.DataFrame | CustomerError]]:
    """Prepared rows of the largest customers, or why there are none; of large files only the first rows.

    Who is over a limit gets no model, and so no say in what is guessed for the others, nor their place here. The look
    ends where several of them cannot be looked at at all.
    """
    unpartitioned, limits = _unpartitioned_rows(definition, customers), definition.limits
    too_large = customers.numbers("rows") > limits.max_rows
    largest = customers.take(np.lexsort((-customers.numbers("size"), too_large))[:LOOKED_AT])
    lost = 0
    for customer in largest:
        try:
            check_size(customer, limits.max_rows)
            if customer.unpartitioned:
                rows = unpartitioned(customer)
                check_names([str(name) for name in rows.columns], "its table", limits.max_columns)
            elif customer.key is None:
                rows = read_frame(
                    customer.files[0],
                    definition.csv_options,
                    rows=ROWS,
                    max_rows=limits.max_rows,
                    max_columns=limits.max_columns,
                )
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
    for each in customers.take(customers.numbers("rows") > definition.limits.max_rows):
        if each.key:
            refused.setdefault(each.table, set()).add(each.key)
    heads: dict[int, list[tuple[pd.DataFrame | pa.Table, np.ndarray, list[Key]]]] = {}

    def rows_of(customer: Customer) -> pd.DataFrame:
        if isinstance(definition.data, Mapping):
            return to_frame(to_arrow(definition.data[customer.id]))
        if not definition.by:
            return to_frame(to_arrow(definition.data))
        assert customer.key is not None
        if customer.table not in heads:
            heads[customer.table] = list(_heads(definition, customer.table, refused.get(customer.table, set())))
        found = [
            _own(head, codes == keys.index(customer.key))
            for head, codes, keys in heads[customer.table]
            if customer.key in keys
        ]
        head, codes, _ = heads[customer.table][0]
        return to_frame(concatenated(found or [_own(head, codes < 0)]), definition.csv_options)

    return rows_of


def _heads(
    definition: Definition, number: int, refused: Set[Key]
) -> Iterator[tuple[pd.DataFrame | pa.Table, np.ndarray, list[Key]]]:
    """The first rows of each file of a keyed table, with the code of each row's key, and the keys.

    refused: keys whose rows are passed over.
    """
    by = definition.by
    table = next(table for table in find_tables(definition.data, by) if table.number == number)
    if table.frame is not None:
        yield (table.frame, *row_keys(key_table(table.frame, by), by))
    for file in table.files[:LOOKED_AT]:
        outside = hive_values(file.path)
        text = [name for name in by if name not in outside]
        if refused:
            pieces = (piece.assign(**outside) for piece in read_pieces(file.path, definition.csv_options, text=text))
            rows = _first_without(refused, pieces, by)
        else:
            head = read_frame(file.path, definition.csv_options, text=text, as_written=True, rows=ROWS)
            rows = head.assign(**outside)
        keys = row_keys(key_table(rows, by), by)
        yield (rows if is_parquet(file.path) else written_table(rows, (*by, *outside)), *keys)


def _first_without(refused: Set[Key], pieces: Iterable[pd.DataFrame], by: Sequence[str]) -> pd.DataFrame:
    """The first rows of other keys."""
    import pandas as pd

    kept: list[pd.DataFrame] = []
    for piece in pieces:
        codes, keys = row_keys(key_table(piece, by), by)
        kept.append(piece[np.array([key not in refused for key in keys])[codes]])
        if sum(map(len, kept)) >= ROWS:
            break
    return pd.concat(kept, ignore_index=True)[:ROWS]


def _own(head: pd.DataFrame | pa.Table, rows: np.ndarray) -> pa.Table:
    return head.filter(rows) if isinstance(head, pa.Table) else to_arrow(head[rows])
