"""Divides things by size into groups of about equal load; what they are (studies, files) is the caller's affair."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import numpy as np

BATCHES_PER_SLOT = 8
STUDIES_PER_BATCH = 2000
BATCH_BYTES = 1 << 28  # of a keyed table; a worker holds a batch's rows at once


def batch_count(studies: int, slots: int, keyed_bytes: int = 0) -> int:
    """Return about eight batches per slot: at most 2,000 studies or 256 MiB of a keyed table each, and none empty."""
    wanted = max(BATCHES_PER_SLOT * slots, math.ceil(studies / STUDIES_PER_BATCH), math.ceil(keyed_bytes / BATCH_BYTES))
    return max(1, min(studies, wanted))


def balance(sizes: Sequence[int] | np.ndarray, count: int) -> list[np.ndarray]:
    """Divide positions into `count` groups: the largest first, each to the group with the smallest load so far."""
    sizes = np.asarray(sizes)
    overhead = _overhead(sizes)
    loads = [(0.0, group) for group in range(count)]
    groups: list[list[int]] = [[] for _ in range(count)]
    order = np.argsort(-sizes, kind="stable")
    for position, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
        load, group = loads[0]
        groups[group].append(position)
        heapq.heapreplace(loads, (load + size + overhead, group))
    return [np.array(group) for group in groups if group]


def divide(sizes: np.ndarray, together: np.ndarray, count: int) -> list[np.ndarray]:
    """Divide items as `balance` does, but keep those with one number in `together` together, in order, where possible.

    Customers in the same file of a keyed table are read in one go, so a batch should have few files and a file few
    batches. Items that would make more than a batch are cut into runs.
    """
    _, first, kinds = np.unique(together, return_index=True, return_inverse=True)
    if len(first) == len(sizes):
        return balance(sizes, count)
    order = np.lexsort((np.arange(len(sizes)), first[kinds]))
    starts = np.flatnonzero(np.diff(first[kinds][order], prepend=-1))
    load = sizes + _overhead(sizes)
    share = load.sum() / count
    pieces = np.rint(np.add.reduceat(load[order], starts) / share).astype(np.int64)
    runs: list[np.ndarray] = []
    for positions, number in zip(np.split(order, starts[1:]), pieces.tolist(), strict=True):
        runs += [positions] if number < 2 else _cut(load, positions, number)
    groups = balance([int(sizes[run].sum()) for run in runs], min(count, len(runs)))
    return [np.concatenate([runs[run] for run in group.tolist()]) for group in groups]


def _cut(load: np.ndarray, positions: np.ndarray, pieces: int) -> list[np.ndarray]:
    """Cut positions into consecutive runs of about equal load."""
    after = np.cumsum(load[positions])
    middle = after - load[positions] / 2
    run = np.minimum(pieces - 1, (middle * pieces / after[-1]).astype(np.int64))
    return np.split(positions, np.flatnonzero(np.diff(run)) + 1)


def _overhead(sizes: np.ndarray) -> float:
    return max(1.0, int(sizes.sum()) / max(1, len(sizes)))  # a small customer is not free
