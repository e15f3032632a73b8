"""What customers of a table are known by where nobody asks for single rows: a digest of these, in their order.

A resume goes on with splits by the rows' places, so there rows in another order are other rows. A table may be larger
than memory: of each customer and block three numbers are kept, which add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tuning.data.keyed_tables import KeyedTable
from tuning.data.row_digests import Part, in_parallel, read_block
from tuning.definition.definition import Definition

STEP = np.uint64(0xD6E8FEB86659FD93)  # a row's hash is multiplied with it as often as rows come before


def digests_in_order(table: KeyedTable, definition: Definition) -> tuple[pa.StringArray, pa.StringArray]:
    """The customers of a table of files, and the digest of each one's rows, 32 hex digits, which knows their order."""
    parts = [Part(part, prefix=table.prefix) for part in table.parts(definition)]
    blocks = [each for found in in_parallel(Part.blocks, parts) for each in found]
    return _joined_in_order(in_parallel(lambda each: _in_order(read_block(*each)), blocks))


@dataclass(frozen=True)
class _InOrder:
    """Customers' rows of consecutive blocks: their number, the sum of their hashes, and that with their places."""

    customers: pa.StringArray
    rows: np.ndarray
    total: np.ndarray
    placed: np.ndarray


def _in_order(found: pa.Table) -> _InOrder:
    rows, each = found.column("rows").to_numpy(), found.column("each").combine_chunks().flatten().to_numpy()
    ends = np.cumsum(rows)
    place = np.arange(len(each)) - np.repeat(ends - rows, rows)
    powers = np.cumprod(np.r_[np.uint64(1), np.full(int(rows.max(initial=0)), STEP)])
    placed = np.r_[np.uint64(0), np.cumsum(each * powers[place])]
    customers = found.column("customer").combine_chunks()
    return _InOrder(customers, rows, found.column("digest").to_numpy(), placed[ends] - placed[ends - rows])


def _joined_in_order(blocks: Sequence[_InOrder]) -> tuple[pa.StringArray, pa.StringArray]:
    """The customers, and the digest of each, 32 hex digits."""
    encoded = pa.concat_arrays([pa.array([], pa.string()), *(each.customers for each in blocks)]).dictionary_encode()
    codes = encoded.indices.to_numpy()
    if not len(codes):
        return encoded.dictionary, encoded.dictionary
    order = np.argsort(codes, kind="stable")
    rows, total, placed = (
        np.concatenate([getattr(each, name) for each in blocks])[order] for name in ("rows", "total", "placed")
    )
    starts = np.flatnonzero(np.r_[True, np.diff(codes[order]) != 0])
    before = np.cumsum(rows) - rows
    before -= np.repeat(before[starts], np.diff(np.r_[starts, len(codes)]))
    sums = np.stack([np.add.reduceat(total, starts), np.add.reduceat(placed * _powers(before), starts)], axis=1)
    text = sums.astype(">u8").tobytes().hex().encode()
    ends = pa.array(np.arange(len(starts) + 1) * 32, pa.int32()).buffers()[1]
    return encoded.dictionary, pa.StringArray.from_buffers(len(starts), ends, pa.py_buffer(text))


def _powers(numbers: np.ndarray) -> np.ndarray:
    """(n,) `STEP` to the power of each."""
    found, base, left = np.ones(len(numbers), dtype=np.uint64), STEP, numbers
    with np.errstate(over="ignore"):
        while left.any():
            found = np.where(left & 1, found * base, found)
            base, left = base * base, left >> 1
    return found
