"""What customers' rows are known by, so that a resume notices which ones have changed.

A customer has a stamp, which is quick to look up (size and time of its file, or of all files of its table), and a
digest of its content, which is made where the stamp is new: that of its file, or of its own rows in a table or a
frame. On object storage stamp and digest of a file are the ETag.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.columnar import ArrowColumn, Columnar, combined
from tuning.data.customers import Customer, Customers, rows_or_bytes
from tuning.data.file_access import GONE, file_digest, file_name, file_stamp, joined, look_at_each
from tuning.data.keyed_tables import KeyedTable, find_tables
from tuning.data.keys import Key, customer_id, row_keys
from tuning.data.partition import pieces
from tuning.definition.definition import Definition
from tuning.errors import ChangedDataError, CustomerError, DataError
from tuning.notes import DataCode
from tuning.preprocessing.row_hashes import mixed, row_hashes

T = TypeVar("T")
STEP = np.uint64(0xD6E8FEB86659FD93)  # times the place of a row among its customer's
MOST_READS = 4  # of a file that is written again and again


def stamped(customers: Sequence[Customer]) -> Customers:
    """Stamp the customers by their files as they are now; without files they keep the stamp of their table."""
    found = Columnar.of(Customer, customers)
    files = found.shared("files")
    stamp_of = look_at_each(file_stamp, (file for names in files.distinct for file in names))
    return found.with_columns(
        stamp=combined(
            lambda names, stamp: joined([stamp_of[name] for name in names]) if names else stamp,
            files,
            found.shared("stamp"),
        )
    )


def digested(definition: Definition, customers: Sequence[Customer]) -> Customers:
    """Return the customers with the stamp and the digest that their rows have now.

    The stamp is looked up first: of a file that changes meanwhile it is out of date, and the digest is made again.
    """
    return _with_digests(definition, stamped(customers))


def _with_digests(definition: Definition, customers: Customers) -> Customers:
    of_rows = _of_rows(definition, customers) if customers else {}
    ids, digests = pa.array(of_rows.keys(), pa.string()), pa.array(of_rows.values(), pa.string())
    own = digests.take(pc.index_in(customers.texts("id"), value_set=ids))
    left = customers.take(np.asarray(pc.is_null(own)))
    digest_of = look_at_each(file_digest, (file for names in left.shared("files").distinct for file in names))
    of_files = customers.shared("files").map(lambda names: joined([digest_of.get(file, "") for file in names]))
    return customers.with_columns(digest=ArrowColumn(pc.coalesce(own, of_files.arrow(pa.string()))))


def touched(definition: Definition, before: Sequence[Customer], now: Sequence[Customer]) -> Customers:
    """Return customers with another stamp than before, as they are now; `differ` tells whether their rows changed.

    before: the same customers as a plan has them, in the same order.
    """
    found, then = stamped(now), Columnar.of(Customer, before)
    new = pc.or_(pc.equal(found.texts("stamp"), GONE), pc.not_equal(found.texts("stamp"), then.texts("stamp")))
    return _with_digests(definition, found.take(np.asarray(new)))


def differ(there: Customers, here: Customers) -> np.ndarray:
    """Return (n,) whether customers' rows have changed. there: as they were, in the same order.

    Without a digest (of a table that could not be read), only the number of rows tells.
    """
    digests = [each.texts("digest") for each in (there, here)]
    told = pc.and_(*(pc.not_equal(each, "") for each in digests))
    numbers = [rows_or_bytes(each) for each in (there, here)]
    return np.where(np.asarray(told), np.asarray(pc.not_equal(*digests)), numbers[0] != numbers[1])


def with_missing_files(customers: Customers) -> Customers:
    """Return the customers with missing files, by their stamps."""
    return customers.take(np.asarray(pc.equal(customers.texts("stamp"), GONE)))


def read_unchanged(customer: Customer, read: Callable[[], T]) -> T:
    """Read a customer's file; `ChangedDataError` where its rows are not those that a plan knows.

    Only one look at the file, after it was read, where nothing has happened to it. Else its rows are looked at, and
    read again: those that were read may have been of a file that was just being written.
    """
    if not customer.stamp:
        return read()
    path, before = customer.files[0], customer.stamp
    for _ in range(MOST_READS):
        found, failure = None, None
        try:
            found = read()
        except Exception as error:
            failure = error
        now = file_stamp(path)
        if now == before and failure is not None:
            raise failure
        if now == before:
            return cast("T", found)
        if customer.digest not in ("", file_digest(path)):
            gone = DataCode.FILE_GONE(file_name(path)) if now == GONE else DataCode.DATA_CHANGED()
            raise ChangedDataError(gone)
        before = now
    raise ChangedDataError(DataCode.DATA_CHANGED())


def _of_rows(definition: Definition, customers: Customers) -> dict[str, str]:
    """Return the digests of customers without a file of their own, by id."""
    data, found = definition.data, dict[str, str]()
    if isinstance(data, Mapping) or not definition.by:  # a frame each
        for customer in customers:
            frame = data.get(customer.id) if isinstance(data, Mapping) else data
            if isinstance(frame, pd.DataFrame):
                found[customer.id] = hashlib.sha256(row_hashes(frame).tobytes()).hexdigest()
        return found
    numbers = set(customers.numbers("table").tolist())
    for table in find_tables(data, definition.by):
        if table.number in numbers:
            with suppress(CustomerError, DataError):
                found |= _of_keys(table, definition)
    return found


def _of_keys(table: KeyedTable, definition: Definition) -> dict[str, str]:
    """Return a digest of the rows of each customer of a table, in their order, by its id.

    The table is read once, and may be larger than memory: three numbers are kept of each customer.
    """
    numbers, count, sums = dict[Key, int](), np.zeros(0, np.int64), np.zeros((2, 0), np.uint64)
    for piece in pieces(table, definition):
        codes, keys = row_keys(piece, definition.by)
        own = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
        more = len(numbers) - len(count)
        count, sums = np.pad(count, (0, more)), np.pad(sums, ((0, 0), (0, more)))
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(keys) + 1))
        rows = np.diff(bounds)
        place = np.repeat(count[own] - bounds[:-1], rows) + np.arange(len(order))
        hashes = row_hashes(piece)[order]
        for each in sums:
            hashes = mixed(hashes + place.astype(np.uint64) * STEP)
            total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
            each[own] += total[bounds[1:]] - total[bounds[:-1]]
        count[own] += rows
    digests = map("{:016x}{:016x}-{}".format, *sums.tolist(), count.tolist())
    return {table.prefix + customer_id(key): digest for key, digest in zip(numbers, digests, strict=True)}
