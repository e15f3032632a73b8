"""Processes in a placement group: how their calls end, on a cluster with two slots."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tuning.worker_groups.process_group import (
    CallAnswered,
    CallRaised,
    ProcessGroup,
    ProcessLost,
)

pytestmark = pytest.mark.ray

PARTS_OF_A_CPU = 0.1


class Worker:
    """fails: whether its first processes die before they can be asked, as long as there is such a file."""

    def __init__(self, fails: Path) -> None:
        if fails.exists():
            fails.unlink()
            os._exit(0)

    def ready(self) -> str:
        return "ready"

    def divide(self, number: int, by: int) -> float:
        return number / by

    def die(self, status: int | None) -> None:
        os.kill(os.getpid(), signal.SIGKILL) if status is None else os._exit(status)


@pytest.fixture
def group(group_cluster: None) -> Iterator[ProcessGroup]:
    import ray

    place = ray.util.placement_group([{"CPU": PARTS_OF_A_CPU}] * 3)
    processes = ProcessGroup(place, Worker, "ready", first=1)
    yield processes
    processes.close()
    ray.util.remove_placement_group(place)


def settled(group: ProcessGroup, count: int) -> dict[int, object]:
    """How so many calls have ended, by the process's number."""
    found: dict[int, object] = {}
    while len(found) < count:
        found |= {end.key: end for end in group.wait(10.0)}
    return found


def test_a_group_says_how_each_call_has_ended_and_starts_a_process_again(group: ProcessGroup, tmp_path: Path) -> None:
    assert group.size == 2
    for number in range(group.size):
        group.start(number, tmp_path / "none")
    assert set(group.coming) == {0, 1}
    assert group.late(0.0)
    assert settled(group, 2) == {number: CallAnswered(number, "ready") for number in range(2)}
    assert (group.there, set(group.coming), group.late(0.0)) == ({0, 1}, set(), False)
    group.ask(0, "divide", 6, 3)
    group.ask(1, "divide", 6, 0)
    ends = settled(group, 2)
    assert ends[0] == CallAnswered(0, 2.0)
    assert isinstance(raised := ends[1], CallRaised)
    assert isinstance(raised.error, ZeroDivisionError)
    assert not group.dead(1)
    for status in (None, 1, 0):  # a signal; whatever the status, it is a loss
        if status is not None:
            group.start(1, tmp_path / "none")
            settled(group, 1)
        group.ask(1, "die", status)
        assert isinstance(settled(group, 1)[1], ProcessLost)
        assert group.there == {0}
        assert group.dead(1)
    (tmp_path / "fails").touch()
    for _ in range(2):
        group.start(1, tmp_path / "fails")
        (end,) = settled(group, 1).values()
    assert end == CallAnswered(1, "ready")
    assert group.starts == 6


def test_nobody_hears_of_a_process_that_was_ended(group: ProcessGroup, tmp_path: Path) -> None:
    for number in range(group.size):
        group.start(number, tmp_path / "none")
    group.end(0)
    assert settled(group, 1) == {1: CallAnswered(1, "ready")}
    assert group.wait(0.0) == []
    assert group.there == {1}
