"""Which of a customer's rows were not there before, of tables of `tuning.data.row_digests`."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def hashes_of(rows: pa.Table, customers: Collection[str]) -> dict[str, np.ndarray]:
    """(n,) hashes of each of the customers' rows, in the order of its table."""
    own = rows.filter(pc.is_in(rows["customer"], value_set=pa.array(sorted(customers), pa.string())))
    found: dict[str, list[np.ndarray]] = {name: [] for name in customers}
    for name, each in zip(own["customer"].to_pylist(), own["each"], strict=True):
        found[name].append(np.asarray(each.values.to_numpy(zero_copy_only=False), dtype=np.uint64))
    nothing = np.empty(0, np.uint64)
    return {name: np.concatenate([nothing, *parts]) for name, parts in found.items()}


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
