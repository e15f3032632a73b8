"""Divides things by size into groups of about equal load; what they are (studies, files) is the caller's affair."""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Sequence

SHARDS_PER_SLOT = 8
STUDIES_PER_SHARD = 2000
SHARD_BYTES = 1 << 28  # of a keyed table; a worker holds a shard's rows at once


def shard_count(studies: int, slots: int, keyed_bytes: int = 0) -> int:
    """About eight shards per slot, none with more than 2,000 studies or 256 MiB of a keyed table, none empty."""
    wanted = max(SHARDS_PER_SLOT * slots, math.ceil(studies / STUDIES_PER_SHARD), math.ceil(keyed_bytes / SHARD_BYTES))
    return max(1, min(studies, wanted))


def balance(sizes: Sequence[int], count: int) -> tuple[tuple[int, ...], ...]:
    """Positions in `count` groups, the largest first, each to the group with the least so far."""
    order = sorted(range(len(sizes)), key=lambda position: (-sizes[position], position))
    loads = [(0.0, group) for group in range(count)]
    groups: list[list[int]] = [[] for _ in range(count)]
    overhead = _overhead(sizes)
    for position in order:
        load, group = heapq.heappop(loads)
        groups[group].append(position)
        heapq.heappush(loads, (load + sizes[position] + overhead, group))
    return tuple(tuple(group) for group in groups if group)


def divide(sizes: Sequence[int], together: Sequence[Hashable], count: int) -> tuple[tuple[int, ...], ...]:
    """As `balance`, but items of the same kind in `together` stay together, in their order, as far as balance allows.

    Customers in the same file of a keyed table are read in one go, so a shard should have few files and a file few
    shards. A kind that is larger than a shard is cut into runs.
    """
    kinds: dict[Hashable, list[int]] = {}
    for position, kind in enumerate(together):
        kinds.setdefault(kind, []).append(position)
    if len(kinds) == len(sizes):
        return balance(sizes, count)
    overhead = _overhead(sizes)
    share = sum(size + overhead for size in sizes) / count
    runs: list[list[int]] = []
    for positions in kinds.values():
        load = sum(sizes[position] + overhead for position in positions)
        runs += _cut(sizes, positions, max(1, round(load / share)), overhead)
    groups = balance([sum(sizes[position] for position in run) for run in runs], min(count, len(runs)))
    return tuple(tuple(position for run in group for position in runs[run]) for group in groups)


def _cut(sizes: Sequence[int], positions: list[int], pieces: int, overhead: float) -> list[list[int]]:
    """Consecutive runs of about equal load."""
    total = sum(sizes[position] + overhead for position in positions)
    runs: list[list[int]] = [[] for _ in range(pieces)]
    before = 0.0
    for position in positions:
        load = sizes[position] + overhead
        middle = before + load / 2
        runs[min(pieces - 1, int(middle * pieces / total))].append(position)
        before += load
    return [run for run in runs if run]


def _overhead(sizes: Sequence[int]) -> float:
    return max(1.0, sum(sizes) / max(1, len(sizes)))  # a small customer is not free
