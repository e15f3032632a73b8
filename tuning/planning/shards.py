"""The shards of a packed run: which studies one Tune trial works through, by their resources, customers and files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuning.data.balancing import divide, shard_count
from tuning.data.customers import UNORDERED, Customers, about_rows
from tuning.study.study import StudyTable, customers_of

FEW_ROWS = 4  # so few hardly make a model


def make_shards(studies: StudyTable, slots: int) -> tuple[np.ndarray, ...]:
    """Positions of studies, one group per Tune trial; studies of other resources are in other groups.

    Customers with hardly any rows come first: they end at once, so that progress knows sooner how much there is to do.
    """
    shards: list[np.ndarray] = []
    for positions in _groups(studies):
        positions = positions[_row_order(customers_of(studies.take(positions)))]
        customers = customers_of(studies.take(positions))
        sizes = customers.numbers("size")
        keyed = int(sizes[customers.present("key")].sum())
        count = max(1, shard_count(len(customers), slots, keyed) * len(positions) // len(studies))
        shards += [positions[group] for group in divide(sizes, _reading_units(customers), count)]
    return tuple(shards)


def _groups(studies: StudyTable) -> list[np.ndarray]:
    """Positions of the studies that may share a shard, by their turn."""
    resources = studies.shared("resources")
    needs = list(dict.fromkeys(resources.distinct))
    need = np.array([needs.index(each) for each in resources.distinct], dtype=np.int64)[resources.codes]
    customers = customers_of(studies)
    rows = np.where(customers.present("key"), FEW_ROWS, about_rows(customers))  # tables are read in one go
    turns = (rows >= FEW_ROWS).astype(np.int64)
    codes = turns * len(needs) + need
    found, first = np.unique(codes, return_index=True)
    order = sorted(range(len(found)), key=lambda each: (turns[first[each]], first[each]))
    return [np.flatnonzero(codes == found[each]) for each in order]


def _row_order(customers: Customers) -> np.ndarray:
    """Positions of the customers in the order in which their rows lie."""
    numbers = {name: pa.array(customers.numbers(name)) for name in ("table", "first_block")}
    where = pa.table({**numbers, "id": customers.texts("id")})
    found: np.ndarray = pc.sort_indices(where, [(name, "ascending") for name in where.column_names]).to_numpy()
    return found


def _reading_units(customers: Customers) -> np.ndarray:
    """(n,) a number per study, the same where a worker should read the data in one go: of one customer, or one file."""
    files = customers.shared("files").codes
    ids: np.ndarray = customers.texts("id").dictionary_encode().indices.to_numpy()
    return np.where(customers.numbers("first_block") == UNORDERED, ids, -1 - files)
