"""Who the customers of a definition are, and where the rows of each one are found.

A customer is one file, one frame, or one value (combination) of key columns of a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.columnar import ArrowColumn, Columnar, DictionaryColumn, constant
from tuning.basics.wording import did_you_mean
from tuning.data.file_access import look_at_each, size_of
from tuning.data.files import File, find_files
from tuning.data.keyed_tables import KeyedTable, count_keys, find_tables
from tuning.data.keys import Key
from tuning.data.manifest import read_manifest
from tuning.definition.customer_limits import Extent, Limits
from tuning.definition.definition import Definition
from tuning.definition.options import CustomerOptions
from tuning.errors import DataError
from tuning.storage.names import mask

BYTES_PER_ROW = 80  # where nothing is known but the size


@dataclass(frozen=True)
class Customer:
    """id: as it stands on the leaderboard.

    files: where its rows are; empty while they are only in a table that is still to be partitioned, and when there is
    no data at all. key: its value in the key columns, None when a whole file or frame is its own. table: number of the
    keyed table. rows: None when not known without reading. size: about its bytes, to balance batches. options: what the
    manifest says about it. stamp, digest: what its rows are known by (`tuning.data.fingerprints`); empty where nobody
    looked.
    """

    id: str
    files: tuple[str, ...] = ()
    key: Key | None = None
    table: int = 0
    rows: int | None = None
    size: int = 0
    options: CustomerOptions | None = field(default=None, compare=False)
    stamp: str = ""
    digest: str = ""

    @property
    def about_rows(self) -> float:
        """Rows, or a guess from the bytes."""
        return self.size / BYTES_PER_ROW if self.rows is None else self.rows

    @property
    def unpartitioned(self) -> bool:
        """Whether its rows must be written into a file of the run first, see `tuning.data.partition`."""
        return self.rows is not None and not self.files

    @property
    def extent(self) -> Extent:
        """What is known of its size without reading."""
        return Extent(self.rows)


#: Many customers; none of them is an object until it is asked for.
Customers: TypeAlias = Columnar[Customer]


def about_rows(customers: Customers) -> np.ndarray:
    """Return (n,) `Customer.about_rows` of each."""
    rows = customers.numbers("rows", missing=-1)
    return np.where(rows < 0, customers.numbers("size") / BYTES_PER_ROW, rows)


def too_large(customers: Customers, limits: Limits) -> np.ndarray:
    """Return (n,) whether each is known to exceed a limit, by `Customer.extent`."""
    return np.broadcast_to(limits.exceeded(Extent(customers.numbers("rows"))), len(customers))


def rows_or_bytes(customers: Customers) -> np.ndarray:
    """Return (n,) rows where they are known without reading, else bytes. Either changes when rows come or go."""
    rows = customers.numbers("rows", missing=-1)
    return np.where(rows < 0, customers.numbers("size"), rows)


def unpartitioned(customers: Customers) -> np.ndarray:
    """Return (n,) `Customer.unpartitioned` of each."""
    return customers.present("rows") & customers.shared("files").test(lambda files: not files)


def one_each(customers: Customers) -> Customers:
    """Return each customer once, where several studies have it."""
    codes = customers.texts("id").dictionary_encode().indices.to_numpy()
    return customers.take(np.sort(np.unique(codes, return_index=True)[1]))


def places_of(ids: Sequence[str], customers: Customers) -> np.ndarray:
    """Return (n,) the position of the customer with each of these ids; -1 where there is none."""
    found = pc.index_in(pa.array(ids, pa.string()), value_set=customers.texts("id"))
    return found.fill_null(-1).to_numpy(zero_copy_only=False)


def find_customers(definition: Definition) -> Customers:
    """Return the customers of a definition, in the order of their ids.

    Of keyed tables only the key columns are read; the rows of unpartitioned customers are written into files later
    (`tuning.data.partition`).
    """
    return select(_all_customers(definition), definition.customers)


def select(found: Customers, ids: Sequence[str]) -> Customers:
    """Return the customers that are asked for; all when none is."""
    if not ids:
        return found
    places = places_of(ids, found)
    for name in np.array(ids, dtype=object)[places < 0]:
        known = set(found.texts("id").to_pylist())
        raise DataError(f"customers: there is no customer {name!r} among {len(found)}.{did_you_mean(name, known)}")
    return found.take(np.unique(places))


def _all_customers(definition: Definition) -> Customers:
    manifest = read_manifest(definition.manifest) if definition.manifest is not None else {}
    data = definition.data
    if data is None:
        return unique(_mapped(manifest)) if manifest else Columnar.of(Customer, [Customer(definition.name)])
    if isinstance(data, Mapping):
        found = _mapped(data)
    elif definition.by or hasattr(data, "columns"):
        found = _keyed(definition)
    else:
        found = _per_file(find_files(data))
    return unique(_with_options(found, manifest))


def _per_file(files: Sequence[File]) -> Customers:
    ids = ArrowColumn(pa.array([file.id for file in files], pa.string()))
    paths = DictionaryColumn.of([(file.path,) for file in files])
    sizes = ArrowColumn(pa.array([file.size for file in files], pa.int64()))
    return Columnar(Customer, len(files), {"id": ids, "files": paths, "size": sizes})


def _mapped(entries: Mapping[str, str | CustomerOptions | pd.DataFrame]) -> Customers:
    """Return customers named one by one; a value is a path, a frame, or a mapping of path and options."""
    if not entries:
        raise DataError("data: the mapping of customers to files is empty.")
    paths: dict[str, str] = {}
    options: dict[str, CustomerOptions] = {}
    frames: dict[str, int] = {}
    for name, value in entries.items():
        path = value.path if isinstance(value, CustomerOptions) else value
        if path is None:
            raise DataError(f"customer {name!r} has no path, and there is no `data` to find it in.")
        if not isinstance(path, str):
            frames[name] = len(path)
            continue
        paths[name] = path
        if isinstance(value, CustomerOptions):
            options[name] = value
    sizes = look_at_each(size_of, paths.values())
    found = [Customer(name, (path,), size=sizes[path], options=options.get(name)) for name, path in paths.items()]
    found += [Customer(name, rows=rows, size=rows * BYTES_PER_ROW) for name, rows in frames.items()]
    return Columnar.of(Customer, found)


def _keyed(definition: Definition) -> Customers:
    data = definition.data
    if not definition.by:  # one frame, one customer
        frame: pd.DataFrame = data
        one = Customer(definition.name, rows=len(frame), size=len(frame) * BYTES_PER_ROW)
        return Columnar.of(Customer, [one])
    tables = find_tables(data, definition.by)
    found = Columnar.joined([_of_table(table, definition) for table in tables])
    if not found:
        raise DataError("data: the table has no rows, so it names no customer.")
    return found


def _of_table(table: KeyedTable, definition: Definition) -> Customers:
    stamp = table.stamp  # before its rows are looked at
    ids, keys, rows = count_keys(table, definition)
    per_row = table.size / max(1, int(rows.sum()))
    return Columnar(
        Customer,
        len(ids),
        {
            "id": ArrowColumn(ids),
            "key": ArrowColumn(keys),
            "table": constant(table.number, len(ids)),
            "rows": ArrowColumn(pa.array(rows)),
            "size": ArrowColumn(pa.array((rows * per_row).astype(np.int64))),
            "stamp": constant(stamp, len(ids)),
        },
    )


def _with_options(found: Customers, manifest: Mapping[str, CustomerOptions]) -> Customers:
    if not manifest:
        return found
    places = places_of(list(manifest), found)
    for (name, options), place in zip(manifest.items(), places, strict=True):
        if place < 0:
            known = set(found.texts("id").to_pylist())
            raise DataError(f"manifest: there is no customer {name!r} in the data.{did_you_mean(name, known)}")
        if options.path is not None:
            raise DataError(f"manifest: customer {name!r} has a path, but `data` says where customers are; keep one.")
    ids, said = (found.columns[name].values(0, len(found)) for name in ("id", "options"))
    return found.with_columns(
        options=DictionaryColumn.of([_overruled(*each) for each in zip(said, map(manifest.get, ids), strict=True)])
    )


def _overruled(said: CustomerOptions | None, by: CustomerOptions | None) -> CustomerOptions | None:
    """Merge options; those of the manifest win."""
    if said is None or by is None:
        return by or said
    return said.model_copy(update={name: value for name, value in by if value is not None})


def unique(found: Customers) -> Customers:
    """Sort customers by id; `DataError` where two have the same one."""
    ordered = found.take(pc.sort_indices(found.texts("id")).to_numpy())
    ids = ordered.texts("id")
    again = np.flatnonzero(pc.equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False))
    if again.size:
        one, other = ordered[again[0]], ordered[again[0] + 1]
        raise DataError(
            f"two customers have the id {one.id!r}: {_where(one)} and {_where(other)}. "
            "Rename one, or give data as a mapping of id to file."
        )
    return ordered


def _where(customer: Customer) -> str:
    return mask(customer.files[0]) if customer.files else f"the key {customer.key}"
