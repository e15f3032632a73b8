"""What a contender did, as it tells `benchmarks.measure`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outcome:
    """What a contender did, in seconds since the epoch.

    began: before anything was started or imported. returned: with the results in hand. events: (when, how many) of
    every trial or group of trials that ended. warm: when every worker had ended its first piece of work: a customer
    with everything that belongs to it, or the smallest piece that the contender has. winners: customer → (validation
    score, hold-out score).
    """

    began: float
    returned: float
    events: list[tuple[float, int]]
    warm: float
    winners: dict[str, tuple[float, float]]
    details: dict[str, Any] = field(default_factory=dict)


def all_warm(pieces: Iterable[tuple[float, str]]) -> float:
    """When the last worker ended its first piece of work, from (end, worker) of all pieces."""
    first: dict[str, float] = {}
    for when, worker in pieces:
        first[worker] = min(when, first.get(worker, when))
    return max(first.values())
