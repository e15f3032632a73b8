"""Reading customers' rows in a worker: a file at a time, or a worker's share of a keyed table in one pass."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from tuning.data.cells import ReadCsvOptions
from tuning.data.column_types import concatenated, runs_of_one_schema, to_frame, to_one_frame
from tuning.data.customers import Customer
from tuning.data.file_access import file_name
from tuning.data.fingerprints import GONE, read_unchanged
from tuning.data.keyed_tables import rows_of_file
from tuning.data.keys import row_keys
from tuning.data.registry import file_source
from tuning.definition.customer_limits import Extent
from tuning.definition.definition import Definition
from tuning.errors import ChangedDataError, CustomerError
from tuning.notes import DataCode, FileCode

T = TypeVar("T")


class Loader:
    """Gives customers their rows.

    customers: those that will be asked for; another one is read alone, and not kept. The rows of a keyed table are
    read once for all of them, with their keys pushed down into Parquet, when the first one is asked for; a customer
    that is over a limit is left out there and never costs the others memory.
    """

    def __init__(self, definition: Definition, customers: Iterable[Customer]) -> None:
        self.definition = definition
        self._shares = _shares(customers)
        self._read: dict[int, _Read | None] = {}

    def read(self, customer: Customer) -> pd.DataFrame:
        """A customer's rows; `CustomerError` says why they cannot be read.

        `ChangedDataError` where they are not those that the customer's stamp and digest are of.
        """
        limits = self.definition.limits
        limits.check("its table", customer.extent)
        if customer.key is None:
            rows, changed = read_unchanged(
                self.definition,
                [customer],
                lambda: file_source(customer.files[0], self.definition.csv_options).read(limits=limits),
            )
            found = _unchanged(rows, customer, changed)
        else:
            together = self._share(self._shares[customer.id]) if customer.id in self._shares else None
            share, others = together or self._read_share([customer])
            found = _unchanged(share, customer, others).rows(customer.key)
        limits.check("its table", Extent(*found.shape))
        return _counted(found, customer)

    def _read_share(self, customers: list[Customer]) -> _Read:
        return read_unchanged(self.definition, customers, lambda: OrderedRows.read(self.definition, customers))

    def _share(self, customers: list[Customer]) -> _Read | None:
        """The rows of all customers that are read together, read now or earlier; None when that cannot be done.

        Then each is read alone, and only that customer has a reason whose rows are the damaged ones.
        """
        number = id(customers)
        if number not in self._read:
            try:
                self._read[number] = self._read_share(customers)
            except Exception:  # said again by whoever is read alone
                self._read[number] = None
        return self._read[number]


def _unchanged(made: T | None, customer: Customer, changed: Mapping[str, Customer]) -> T:
    if made is not None and customer.id not in changed:
        return made
    if customer.id in changed and changed[customer.id].stamp == GONE:
        raise ChangedDataError(DataCode.FILE_GONE(file_name(customer.files[0])))
    raise ChangedDataError(DataCode.DATA_CHANGED())


def _counted(rows: pd.DataFrame, customer: Customer) -> pd.DataFrame:
    """The rows, as many as were counted when customers were found; `CustomerError` where they are not."""
    if customer.rows in (None, len(rows)):
        return rows
    raise CustomerError(FileCode.OTHER_COUNT(rows=len(rows), counted=customer.rows))


def _shares(customers: Iterable[Customer]) -> dict[str, list[Customer]]:
    """Keyed customers by id → all those that have files in common with them, directly or through others."""
    shares: dict[str, list[Customer]] = {}
    of_file: dict[str, list[Customer]] = {}
    for customer in customers:
        if customer.key is None:
            continue
        joined = list(
            {id(share): share for file in customer.files if (share := of_file.get(file)) is not None}.values()
        )
        share = joined[0] if joined else []
        share.append(customer)
        for other in joined[1:]:
            share.extend(other)
        for member in share if len(joined) > 1 else (customer,):
            shares[member.id] = share
            of_file.update(dict.fromkeys(member.files, share))
    return shares


class OrderedRows:
    """Rows of several customers, ordered by customer. No customer's types depend on what another one's rows hold.

    tables: rows with the customer of each, as a position in names. csv: options of cells as they are written.
    """

    def __init__(self, tables: Sequence[tuple[pa.Table, np.ndarray, Sequence[Hashable]]], csv: ReadCsvOptions) -> None:
        self._csv = csv
        self._runs = [_Ordered(*each) for each in tables]
        self._of: dict[Hashable, list[_Ordered]] = {}
        if len(self._runs) == 1:
            self._runs[0].become_frame()
            return
        for run, (_, _, names) in zip(self._runs, tables, strict=True):
            for name in names:  # whose rows may be in several, which only together tell their types
                self._of.setdefault(name, []).append(run)

    @classmethod
    def read(cls, definition: Definition, customers: Sequence[Customer]) -> OrderedRows:
        """The rows of keyed customers that are within the limits, by their keys."""
        wanted = [customer for customer in customers if not definition.limits.exceeded(customer.extent)]
        files = list(dict.fromkeys(file for customer in wanted for file in customer.files))
        tables = runs_of_one_schema([_of_file(file, definition, wanted) for file in files])
        return cls([(table, *row_keys(table, definition.by)) for table in tables], definition.csv_options)

    def rows(self, name: Hashable) -> pd.DataFrame:
        """A customer's rows; none of one that is not there."""
        if len(self._runs) == 1 and (found := self._runs[0].frame(name)) is not None:
            return found
        parts = [run.rows(name) for run in self._of.get(name, self._runs[:1])]
        frame = to_frame(concatenated(parts), self._csv)
        for column in frame.columns[[isinstance(dtype, pd.CategoricalDtype) for dtype in frame.dtypes]]:
            frame[column] = frame[column].cat.remove_unused_categories()
        return frame


_Read: TypeAlias = "tuple[OrderedRows | None, Mapping[str, Customer]]"


class _Ordered:
    """A table's rows, ordered by customer."""

    def __init__(self, table: pa.Table, codes: np.ndarray, names: Sequence[Hashable]) -> None:
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
        self._table = table.take(order)
        self._ranges = {name: (int(bounds[code]), int(bounds[code + 1])) for code, name in enumerate(names)}
        self._frame: pd.DataFrame | None = None

    def become_frame(self) -> None:
        """Make a frame for all customers at once where that is the same, which takes a tenth of the time."""
        self._frame = to_one_frame(self._table)
        if self._frame is not None:
            self._table = self._table.schema.empty_table()  # `rows` has none any more

    def frame(self, name: Hashable) -> pd.DataFrame | None:
        """A customer's rows as they are alone; None where only its own rows tell their types."""
        if self._frame is None:
            return None
        start, end = self._ranges.get(name, (0, 0))
        rows = self._frame.iloc[start:end]
        rows.index = pd.RangeIndex(end - start)
        return rows

    def rows(self, name: Hashable) -> pa.Table:
        start, end = self._ranges.get(name, (0, 0))
        return self._table.slice(start, end - start)


def _of_file(path: str, definition: Definition, customers: Sequence[Customer]) -> pa.Table:
    """These customers' rows of a file, and few others."""
    keys = [customer.key for customer in customers if path in customer.files and customer.key is not None]
    return rows_of_file(path, definition, keys)
