"""Which of a customer's rows were not there before, of tables of `tuning.data.row_digests`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def hashes_of(rows: pa.Table, customer: str) -> np.ndarray:
    """(n,) hashes of a customer's rows, in the order of its table."""
    own = rows.filter(pc.equal(rows["customer"], customer))["each"].combine_chunks()
    return np.asarray(own.flatten().to_numpy(zero_copy_only=False), dtype=np.uint64)


def new_positions(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """(k,) positions of rows that were not there; of equal rows, as many as there are more, the last ones."""
    values, counts = np.unique(before, return_counts=True)
    if not len(values):
        return np.arange(len(now))
    order = np.argsort(now, kind="stable")
    ordered = now[order]
    place = np.arange(len(now)) - np.searchsorted(ordered, ordered)  # the how many-th of its equals each row is
    where = np.minimum(np.searchsorted(values, ordered), len(values) - 1)
    had = np.where(values[where] == ordered, counts[where], 0)
    return np.sort(order[place >= had])
