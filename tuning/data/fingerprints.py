"""What customers' rows are known by, so that a resume notices which ones have changed.

A customer has a stamp, which is quick to look up (size and time of its files), and a digest of its content, which is
made where the stamp is new. It is that of its file; in a frame or a table, that of its own rows. On object storage
stamp and digest of a file are the ETag.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.columnar import ArrowColumn, Columnar, constant
from tuning.data.customers import Customer, Customers, rows_or_bytes
from tuning.data.file_access import GONE, look_at_each
from tuning.data.files import File, find_sizes
from tuning.data.keyed_tables import KeyedTable, find_tables
from tuning.data.keys import Key, customer_id, row_keys
from tuning.data.partition import pieces
from tuning.data.registry import format_of
from tuning.definition.definition import Definition
from tuning.errors import CustomerError, DataError
from tuning.preprocessing.row_hashes import mixed, row_hashes

T = TypeVar("T")
STEP = np.uint64(0xD6E8FEB86659FD93)  # times the place of a row among its customer's
MOST_READS = 3  # of a file that is written again and again


def stamped(customers: Sequence[Customer]) -> Customers:
    """The customers with the stamp that their files have now; a frame in memory has none."""
    found = Columnar.of(Customer, customers)
    files = found.shared("files")
    of_files = dict(zip(files.distinct, _stamps(files.distinct), strict=True))
    return found.with_columns(stamp=files.map(lambda names: of_files[names]), digest=constant("", len(found)))


def digested(definition: Definition, customers: Sequence[Customer]) -> Customers:
    """The customers with the stamp and the digest that their rows have now.

    The stamp is looked up first: of a file that changes meanwhile it is out of date, and the digest is made again.
    """
    return _with_digests(definition, stamped(customers))


def _with_digests(definition: Definition, customers: Customers) -> Customers:
    of_rows = _of_rows(definition, customers)
    own = of_rows.column("digest").take(pc.index_in(customers.texts("id"), value_set=of_rows.column("id")))
    left = customers.take(np.asarray(pc.is_null(own)))
    digest_of = look_at_each(
        lambda path: format_of(path).digest(path), (file for names in left.shared("files").distinct for file in names)
    )
    of_files = customers.shared("files").map(lambda names: _joined([digest_of.get(file, "") for file in names]))
    return customers.with_columns(digest=ArrowColumn(pc.coalesce(own, of_files.arrow(pa.string())).combine_chunks()))


def changed(definition: Definition, before: Mapping[str, Customer], now: Sequence[Customer]) -> list[Customer]:
    """Those whose rows are not what they were, as they are now. before: customers by id, as a plan has them."""
    found = touched(definition, [before[each.id] for each in now], now)
    then = Columnar.of(Customer, [before[each.id] for each in found])
    return list(found.take(differ(then, found)))


def touched(definition: Definition, before: Sequence[Customer], now: Sequence[Customer]) -> Customers:
    """Those with another stamp than before, as they are now; whether their rows are other ones, `differ` says.

    before: the same customers as a plan has them, in the same order.
    """
    found, then = stamped(now), Columnar.of(Customer, before)
    new = pc.or_(pc.equal(found.texts("stamp"), GONE), pc.not_equal(found.texts("stamp"), then.texts("stamp")))
    return _with_digests(definition, found.take(np.asarray(new)))


def with_missing_files(customers: Customers) -> Customers:
    """Those whose files are not there, by their stamps."""
    return customers.take(np.asarray(pc.equal(customers.texts("stamp"), GONE)))


def read_unchanged(
    definition: Definition, customers: Iterable[Customer], read: Callable[[], T]
) -> tuple[T | None, dict[str, Customer]]:
    """What `read` makes of customers' files, and those whose rows are not what a plan knows them by, by id.

    Only one look at each file, after it was read, where nothing has happened to it. Else the rows are looked at, and
    read again: those that were read may have been of a file that was just being written. None where all have changed.
    customers: as the plan has them; one without a stamp is left alone.
    """
    known = {customer.id: customer for customer in customers if customer.stamp}
    made = _attempt(read)
    files = [each.files for each in known.values()]
    before, now = [each.stamp for each in known.values()], _stamps(files)
    if now == before:
        return made(), {}
    for _ in range(MOST_READS):
        other = {each.id: each for each in changed(definition, known, [*known.values()])}
        if len(other) == len(known):
            return None, other
        made = _attempt(read)
        before, now = now, _stamps(files)
        if now == before:
            return made(), other
    return None, known


def _stamps(files: Sequence[tuple[str, ...]]) -> list[str]:
    """The stamp of each customer's files."""
    stamp_of = look_at_each(lambda path: format_of(path).stamp(path), {file for names in files for file in names})
    return [_joined([stamp_of[file] for file in names]) for names in files]


def _attempt(read: Callable[[], T]) -> Callable[[], T]:
    """A function that gives what `read` gives now, or raises what it raises."""
    try:
        made = read()
    except Exception as error:
        raised = error

        def fail() -> T:
            raise raised

        return fail
    return lambda: made


def differ(there: Customers, here: Customers) -> np.ndarray:
    """(n,) whether customers' rows have changed. there: as they were, in the same order.

    Without a digest (a large table that the run has divided), only the number of rows tells.
    """
    digests = [each.texts("digest") for each in (there, here)]
    told = pc.and_(*(pc.not_equal(each, "") for each in digests))
    numbers = [rows_or_bytes(each) for each in (there, here)]
    return np.where(np.asarray(told), np.asarray(pc.not_equal(*digests)), numbers[0] != numbers[1])


def _joined(parts: Sequence[str]) -> str:
    """One text for several files'; nothing where there are none, or one of them has none."""
    if len(parts) == 1:
        return parts[0]
    if not parts or not all(parts):
        return ""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _of_rows(definition: Definition, customers: Customers) -> pa.Table:
    """Return the ids and digests of those customers who have one of their own rows."""
    data, found = definition.data, dict[str, str]()
    if isinstance(data, Mapping) or not definition.by:  # a frame each
        for customer in customers:
            frame = data.get(customer.id) if isinstance(data, Mapping) else data
            if isinstance(frame, pd.DataFrame):
                found[customer.id] = hashlib.sha256(row_hashes(frame).tobytes()).hexdigest()
    else:
        for table in _tables(definition, customers):
            with suppress(CustomerError, DataError):
                found |= _of_keys(table, definition)
    ids, digests = pa.array(found.keys(), pa.string()), pa.array(found.values(), pa.string())
    return pa.table({"id": ids, "digest": digests})


def _tables(definition: Definition, customers: Customers) -> list[KeyedTable]:
    """The customers' tables: in place those of their files, else those of the definition."""
    files_of: dict[int, dict[str, None]] = {}
    for customer in customers.first_of_each("table", "files"):
        files_of.setdefault(customer.table, {}).update(dict.fromkeys(customer.files))
    tables = {}
    if not all(files_of.values()):
        tables = {table.number: table for table in find_tables(definition.data, definition.by)}
    for number, files in files_of.items():
        if files:
            sizes = find_sizes(list(files))
            tables[number] = KeyedTable(number, tuple(File(file, sizes[file]) for file in sorted(files)))
    return [tables[number] for number in files_of]


def _of_keys(table: KeyedTable, definition: Definition) -> dict[str, str]:
    """Return a digest of the rows of each customer of a table, in their order, by its id.

    The table is read once, and may be larger than memory: three numbers are kept of each customer.
    """
    numbers, count, sums = dict[Key, int](), np.zeros(0, np.int64), np.zeros((2, 0), np.uint64)
    for piece in pieces(table, definition):
        codes, keys = row_keys(piece.keys, definition.by)
        own = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
        more = len(numbers) - len(count)
        count, sums = np.pad(count, (0, more)), np.pad(sums, ((0, 0), (0, more)))
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(keys) + 1))
        rows = np.diff(bounds)
        place = np.repeat(count[own] - bounds[:-1], rows) + np.arange(len(order))
        hashes = row_hashes(piece.rows)[order]
        for each in sums:
            hashes = mixed(hashes + place.astype(np.uint64) * STEP)
            total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
            each[own] += total[bounds[1:]] - total[bounds[:-1]]
        count[own] += rows
    digests = map("{:016x}{:016x}-{}".format, *sums.tolist(), count.tolist())
    return {table.prefix + customer_id(key): digest for key, digest in zip(numbers, digests, strict=True)}
