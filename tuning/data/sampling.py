"""A look at a few customers before anything runs: enough to guess the task, never the whole data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tuning.data.customers import Customer
from tuning.data.keyed_tables import find_tables
from tuning.data.keys import Key, hive_values, key_table, row_keys
from tuning.data.loading import Loader
from tuning.data.prepared import OwnCode
from tuning.data.reading import read_frame
from tuning.errors import CustomerError
from tuning.wording import did_you_mean, name_list

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from tuning.definition.definition import Definition

ENOUGH = 5  # customers with a usable target
LOOKED_AT = 20  # customers at most
ROWS = 100_000  # of a file


def sample_target(definition: Definition, customers: Sequence[Customer], code: OwnCode) -> tuple[pd.Series | None, str]:
    """The targets of some of the largest customers, and whose they are; (None, why not) when none can be had."""
    import pandas as pd

    target = definition.target
    found: dict[str, pd.Series] = {}
    reason = "there is no customer"
    for customer, frame in sample_frames(definition, customers, code):
        if isinstance(frame, CustomerError):
            reason = f"customer {customer.id!r}: {frame}"
        elif target not in frame.columns:
            hint = did_you_mean(target, frame.columns)
            reason = f"customer {customer.id!r} has no column {target!r}.{hint} There are {name_list(frame.columns)}"
        elif frame[target].notna().sum() < definition.min_rows:
            reason = f"customer {customer.id!r} has fewer than {definition.min_rows} rows with a target {target!r}"
        else:
            found[customer.id] = frame[target]
            if len(found) == ENOUGH:
                break
    if not found:
        return None, reason
    names = ", ".join(map(repr, found))
    return pd.concat(list(found.values()), ignore_index=True), f"customer{'s' if len(found) > 1 else ''} {names}"


def sample_frames(
    definition: Definition, customers: Sequence[Customer], code: OwnCode
) -> Iterator[tuple[Customer, pd.DataFrame | CustomerError]]:
    """Prepared rows of the largest customers, or why there are none; of large files only the first rows."""
    unpartitioned = unpartitioned_rows(definition)
    largest = sorted(customers, key=lambda customer: (-customer.size, customer.id))[:LOOKED_AT]
    for customer in largest:
        try:
            if customer.unpartitioned:
                rows = unpartitioned(customer)
            elif customer.key is None:
                rows = read_frame(customer.files[0], definition.csv_options, rows=ROWS)
            else:
                rows = Loader(definition, [customer]).read(customer)
            yield customer, code.frame(rows)
        except CustomerError as error:
            yield customer, error


def unpartitioned_rows(definition: Definition) -> Callable[[Customer], pd.DataFrame]:
    """A function that gives rows of customers in tables that have no order yet: those among the first of each file."""
    heads: dict[str, list[tuple[pd.DataFrame, np.ndarray, list[Key]]]] = {}

    def rows_of(customer: Customer) -> pd.DataFrame:
        import pandas as pd

        if isinstance(definition.data, Mapping):
            frame: pd.DataFrame = definition.data[customer.id]
            return frame
        if not definition.by:
            return definition.data
        assert customer.key is not None
        number = str(customer.table)
        if number not in heads:
            heads[number] = [_keyed(frame, definition.by) for frame in _heads(definition, customer.table)]
        parts = [
            frame[codes == keys.index(customer.key)] for frame, codes, keys in heads[number] if customer.key in keys
        ]
        return pd.concat(parts, ignore_index=True) if parts else heads[number][0][0].iloc[:0]

    return rows_of


def _heads(definition: Definition, number: int) -> Iterator[pd.DataFrame]:
    """The first rows of each file of a keyed table."""
    table = next(table for table in find_tables(definition.data, definition.by) if table.number == number)
    if table.frame is not None:
        yield table.frame
    for file in table.files[:LOOKED_AT]:
        outside = hive_values(file.path)
        text = [name for name in definition.by if name not in outside]
        yield read_frame(file.path, definition.csv_options, text=text, rows=ROWS).assign(**outside)


def _keyed(frame: pd.DataFrame, by: Sequence[str]) -> tuple[pd.DataFrame, np.ndarray, list[Key]]:
    return (frame, *row_keys(key_table(frame, by), by))
