"""Reading customers' rows in a worker: a customer's own file, or all customers of a file that the run has written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from tuning.data.cells import ReadCsvOptions
from tuning.data.column_types import concatenated, runs_of_one_schema, to_frame, to_one_frame
from tuning.data.customers import Customer
from tuning.data.fingerprints import read_unchanged
from tuning.data.keys import Key, row_keys
from tuning.data.registry import file_source
from tuning.definition.customer_limits import Extent
from tuning.definition.definition import Definition
from tuning.errors import CustomerError
from tuning.notes import FileCode


class Loader:
    """Gives customers their rows.

    customers: those that will be asked for; another one is read alone, and not kept. Customers of a table that are in
    the same files are read together, when the first one is asked for.
    """

    def __init__(self, definition: Definition, customers: Iterable[Customer]) -> None:
        self.definition = definition
        self._kept = {customer.files for customer in customers if customer.key is not None}
        self._read: dict[tuple[str, ...], OrderedRows | CustomerError] = {}

    def read(self, customer: Customer) -> pd.DataFrame:
        """Return a customer's rows; `CustomerError` says why they cannot be read.

        `ChangedDataError` where they are not those that the customer's stamp and digest are of.
        """
        limits = self.definition.limits
        limits.check("its table", customer.extent)
        if customer.key is None:
            source = file_source(customer.files[0], self.definition.csv_options)
            found = read_unchanged(customer, lambda: source.read(limits=limits))
        else:
            found = self._table(customer.files).rows(customer.key)
        limits.check("its table", Extent(*found.shape))
        return _counted(found, customer)

    def _table(self, files: tuple[str, ...]) -> OrderedRows:
        """Return the rows of all customers in some files, read now or earlier."""
        found = self._read.get(files)
        if found is None:
            try:
                found = OrderedRows.read(self.definition, files)
            except CustomerError as error:
                found = error
            if files in self._kept:
                self._read[files] = found
        if isinstance(found, CustomerError):
            raise found
        return found


def _counted(rows: pd.DataFrame, customer: Customer) -> pd.DataFrame:
    """Return the rows; `CustomerError` unless they are as many as were counted when customers were found."""
    if customer.rows in (None, len(rows)):
        return rows
    raise CustomerError(FileCode.OTHER_COUNT(rows=len(rows), counted=customer.rows))


class OrderedRows:
    """Rows of a table, ordered by customer. No customer's types depend on what another one's rows hold.

    tables: the rows. by: key columns. csv: options of cells as they are written.
    """

    def __init__(self, tables: Sequence[pa.Table], by: Sequence[str], csv: ReadCsvOptions) -> None:
        self._csv = csv
        self._runs = [_ordered(table, by) for table in runs_of_one_schema(tables)]
        self._frame: pd.DataFrame | None = None
        if len(self._runs) == 1:
            table, ranges = self._runs[0]
            self._frame = to_one_frame(table)  # for all customers at once, where that is the same: a tenth of the time
            if self._frame is not None:
                self._runs = [(table.schema.empty_table(), ranges)]

    @classmethod
    def read(cls, definition: Definition, files: Sequence[str]) -> OrderedRows:
        """Return all rows of files that the run has written."""
        tables = [piece for file in files for piece in file_source(file, {}).pieces()]
        return cls(tables, definition.by, definition.csv_options)

    def rows(self, key: Key) -> pd.DataFrame:
        """Return a customer's rows; none of an unknown one."""
        if self._frame is not None:
            start, end = self._runs[0][1].get(key, (0, 0))
            rows = self._frame.iloc[start:end]
            rows.index = pd.RangeIndex(end - start)
            return rows
        found = [table[slice(*ranges[key])] for table, ranges in self._runs if key in ranges]
        frame = to_frame(concatenated(found or [self._runs[0][0][:0]]), self._csv)
        for column in frame.columns[[isinstance(dtype, pd.CategoricalDtype) for dtype in frame.dtypes]]:
            frame[column] = frame[column].cat.remove_unused_categories()
        return frame


def _ordered(table: pa.Table, by: Sequence[str]) -> tuple[pa.Table, dict[Key, tuple[int, int]]]:
    """Order a table by customer, and return where the rows of each begin and end."""
    codes, keys = row_keys(table, by)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(keys) + 1)).tolist()
    return table.take(order), {key: (bounds[code], bounds[code + 1]) for code, key in enumerate(keys)}
