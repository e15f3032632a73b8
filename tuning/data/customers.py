"""Who the customers of a definition are, and where the rows of each one are found.

A customer is one file, one frame, or one value (combination) of key columns of a table.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from tuning.data.balancing import shard_count
from tuning.data.files import File, file_ids, find_files, find_sizes
from tuning.data.keyed_tables import KeyedTable, find_tables, index
from tuning.data.keys import Key
from tuning.data.manifest import read_manifest
from tuning.definition.definition import Definition
from tuning.definition.options import CustomerOptions
from tuning.errors import DataError
from tuning.storage.names import mask
from tuning.wording import did_you_mean

UNORDERED = -1
BYTES_PER_ROW = 80  # where nothing is known but the size


@dataclass(frozen=True)
class Customer:
    """id: as it stands on the leaderboard.

    files: where its rows are; empty while they are only in a table that is still to be partitioned, and when there
    is no data at all. key: its value in the key columns, None when the whole file is its own. table: number of the
    keyed table. first_block: the first row group that holds its rows, so
    that a worker's customers are near each other; UNORDERED when that does not matter.
    rows: None when not known without reading. size: about its bytes, to balance shards. options: what the manifest
    says about it. stamp, digest: what its rows are known by, see `tuning.data.fingerprints`; empty where nobody looked.
    """

    id: str
    files: tuple[str, ...] = ()
    key: Key | None = None
    table: int = 0
    first_block: int = UNORDERED
    rows: int | None = None
    size: int = 0
    options: CustomerOptions | None = field(default=None, compare=False)
    stamp: str = ""
    digest: str = ""

    @property
    def rows_or_bytes(self) -> int:
        """Rows where they are known without reading, else bytes: what changes when rows come or go."""
        return self.size if self.rows is None else self.rows

    @property
    def about_rows(self) -> float:
        """Rows, or a guess from the bytes."""
        return self.size / BYTES_PER_ROW if self.rows is None else self.rows

    @property
    def unpartitioned(self) -> bool:
        """Whether its rows must be written into a file of the run first, see `tuning.data.partition`."""
        return self.key is not None and not self.files


def find_customers(definition: Definition) -> list[Customer]:
    """The customers of a definition, in the order of their ids.

    Of keyed tables only the key columns are read; the rows of unpartitioned customers are written into files later
    (`tuning.data.partition`).
    """
    return select(_all_customers(definition), definition.customers)


def select(found: list[Customer], ids: Sequence[str]) -> list[Customer]:
    """Those of the customers that are asked for; all when none is."""
    if not ids:
        return found
    known = {customer.id for customer in found}
    for name in ids:
        if name not in known:
            raise DataError(f"customers: there is no customer {name!r} among {len(found)}.{did_you_mean(name, known)}")
    wanted = set(ids)
    return [customer for customer in found if customer.id in wanted]


def _all_customers(definition: Definition) -> list[Customer]:
    manifest = read_manifest(definition.manifest) if definition.manifest is not None else {}
    data = definition.data
    if data is None and not manifest:
        return [Customer(definition.name)]
    if data is None or isinstance(data, Mapping):
        return unique(_mapped({**(data or {}), **manifest}))
    if definition.by or hasattr(data, "columns"):
        found = _keyed(definition)
    else:
        found = _per_file(find_files(data))
    return unique(_with_options(found, manifest))


def _per_file(files: Sequence[File]) -> list[Customer]:
    return [Customer(name, (file.path,), size=file.size) for name, file in zip(file_ids(files), files, strict=True)]


def _mapped(entries: Mapping[str, Any]) -> list[Customer]:
    """Customers named one by one; a value is a path, a frame, or a mapping of path and options."""
    if not entries:
        raise DataError("data: the mapping of customers to files is empty.")
    paths: dict[str, str] = {}
    options: dict[str, CustomerOptions] = {}
    frames: dict[str, int] = {}
    for name, value in entries.items():
        if hasattr(value, "columns"):
            frames[str(name)] = len(value)
            continue
        path = getattr(value, "path", value)
        if path is None:
            raise DataError(f"customer {name!r} has no path, and there is no `data` to find it in.")
        paths[str(name)] = str(path)
        if path is not value:
            options[str(name)] = value
    sizes = find_sizes(list(paths.values()))
    found = [Customer(name, (path,), size=sizes[path], options=options.get(name)) for name, path in paths.items()]
    return found + [Customer(name, key=(name,), rows=rows, size=rows * BYTES_PER_ROW) for name, rows in frames.items()]


def _keyed(definition: Definition) -> list[Customer]:
    data = definition.data
    if not definition.by:  # one frame, one customer
        frame: pd.DataFrame = data
        return [Customer(definition.name, key=(), rows=len(frame), size=len(frame) * BYTES_PER_ROW)]
    tables = find_tables(data, definition.by)
    found: list[Customer] = []
    for table in tables:
        found += _of_table(table, definition, len(tables))
    if not found:
        raise DataError("data: the table has no rows, so it names no customer.")
    return found


def _of_table(table: KeyedTable, definition: Definition, tables: int) -> list[Customer]:
    found = index(table, definition.by, definition.csv_options)
    slots = definition.slots or len(os.sched_getaffinity(0))
    in_place = found.in_place(max(1, shard_count(len(found.entries), slots, table.size) // tables))
    per_row = table.size / max(1, sum(entry.rows for entry in found.entries))
    return [
        Customer(
            entry.id,
            found.files(entry) if in_place else (),
            key=entry.key,
            table=table.number,
            first_block=entry.first if in_place and found.in_order else UNORDERED,
            rows=entry.rows,
            size=int(entry.rows * per_row),
        )
        for entry in found.entries
    ]


def _with_options(found: list[Customer], manifest: Mapping[str, CustomerOptions]) -> list[Customer]:
    if not manifest:
        return found
    known = {customer.id for customer in found}
    for name, options in manifest.items():
        if name not in known:
            raise DataError(f"manifest: there is no customer {name!r} in the data.{did_you_mean(name, known)}")
        if options.path is not None:
            raise DataError(f"manifest: customer {name!r} has a path, but `data` says where customers are; keep one.")
    return [replace(customer, options=manifest.get(customer.id)) for customer in found]


def unique(found: Iterable[Customer]) -> list[Customer]:
    """In the order of ids; two customers with the same one are an error."""
    seen: dict[str, Customer] = {}
    for customer in found:
        other = seen.setdefault(customer.id, customer)
        if other is not customer:
            raise DataError(
                f"two customers have the id {customer.id!r}: {_where(other)} and {_where(customer)}. "
                "Rename one, or give data as a mapping of id to file."
            )
    return [seen[name] for name in sorted(seen)]


def _where(customer: Customer) -> str:
    return mask(customer.files[0]) if customer.files else f"the key {customer.key}"
