"""Which of a customer's rows were not there before, of tables of `tuning.data.row_digests`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: Share of copies among the rows of last time, from which on an equal row may well be another one.
USUAL_COPIES = 0.25
#: Rows that were known once and are not there any more: one row for each customer that has some.
PAST_ROWS = pa.schema([("customer", pa.string()), ("each", pa.list_(pa.uint64()))])


def hashes_of(rows: pa.Table | None, customers: Collection[str]) -> dict[str, np.ndarray]:
    """(n,) hashes of each of the customers' rows, in the order of its table."""
    nothing = np.empty(0, np.uint64)
    found: dict[str, list[np.ndarray]] = {name: [nothing] for name in customers}
    if rows is not None:
        own = rows.filter(pc.is_in(rows["customer"], value_set=pa.array(sorted(customers), pa.string())))
        for name, each in zip(own["customer"].to_pylist(), own["each"], strict=True):
            found[name].append(np.asarray(each.values.to_numpy(zero_copy_only=False), dtype=np.uint64))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def new_positions(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """(k,) positions of rows that were not there.

    A copy is none, be it of a row of before or of another new one: it may have been delivered twice. Where copies are
    usual among the rows of before, as many equal ones are new as there are more, the last ones.
    """
    values, counts = np.unique(before, return_counts=True)
    order = np.argsort(now, kind="stable")
    ordered = now[order]
    place = np.arange(len(now)) - np.searchsorted(ordered, ordered)  # the how many-th of its equals each row is
    had = np.zeros(len(now), np.int64)
    if len(values):
        where = np.minimum(np.searchsorted(values, ordered), len(values) - 1)
        had = np.where(values[where] == ordered, counts[where], 0)
    usual = len(values) <= (1.0 - USUAL_COPIES) * len(before) if len(before) else False
    return np.sort(order[place >= had if usual else (had == 0) & (place == 0)])


def past_rows(past: pa.Table | None, before: Mapping[str, np.ndarray], now: Mapping[str, np.ndarray]) -> pa.Table:
    """The rows that were known once and are not there now, by `PAST_ROWS`, so that those that come back are not new.

    The last ones, of each customer at most as many as it had or has: else they would grow for ever where old rows are
    dropped every week.

    past: the same of before. before, now: hashes of customers who have lost rows.
    """
    found = {} if past is None else hashes_of(past, past["customer"].to_pylist())
    for name, rows in before.items():
        older = found.get(name, rows[:0])
        known = np.concatenate([older, rows])
        most = max(len(older), len(rows), len(now[name]))
        found[name] = known[new_positions(now[name], known)][-most:]
    kept = {name: rows for name, rows in sorted(found.items()) if len(rows)}
    return pa.table([list(kept), [*kept.values()]], PAST_ROWS)
