"""Which studies one Tune trial of a packed run works through, by their resources, customers and files."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tuning.data.balancing import divide, shard_count
from tuning.data.customers import UNORDERED, Customer
from tuning.definition.options import Resources
from tuning.study.study import FOLLOWER, PILOT, Study

#: Of the groups of studies; all others come in between.
TURNS = {PILOT: 0, FOLLOWER: 2}


def make_shards(studies: Sequence[Study], slots: int) -> tuple[tuple[int, ...], ...]:
    """Positions of studies, one group per Tune trial; studies of other resources are in other groups.

    Those from which others learn come first, those that learn last.
    """
    groups: dict[tuple[int, Resources], list[int]] = {}
    for position, study in enumerate(studies):
        groups.setdefault((TURNS.get(study.group, 1), study.resources), []).append(position)
    shards: list[tuple[int, ...]] = []
    for _, positions in sorted(groups.items(), key=lambda item: item[0][0]):
        ordered = sorted(positions, key=lambda position: _place(studies[position].customer))
        customers = [studies[position].customer for position in ordered]
        keyed = sum(customer.size for customer in customers if customer.key is not None)
        count = max(1, shard_count(len(customers), slots, keyed) * len(positions) // len(studies))
        sizes = [customer.size for customer in customers]
        shards += [tuple(ordered[item] for item in group) for group in divide(sizes, _together(customers), count)]
    return tuple(shards)


def _place(customer: Customer) -> tuple[int, int, str]:
    return (customer.table, customer.first_block, customer.id)


def _together(customers: Sequence[Customer]) -> list[Hashable]:
    """Studies whose data a worker should read in one go have the same entry: of one customer, or of one file."""
    return [customer.id if customer.first_block == UNORDERED else customer.files for customer in customers]
