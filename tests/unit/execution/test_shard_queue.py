"""Which shard a free worker takes: not the one for which a worker is being started."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tuning.execution.shard_queue import next_shard, shard_queue


@pytest.mark.parametrize(
    ("waiting", "order", "running", "chosen"),
    [
        (["3", "4"], ["3", "4"], 1, "3"),  # a worker is through with its shard
        (["1", "3"], ["1", "3"], 0, "3"),  # so it is, while another one is started for the shard that lost its own
        (["1"], ["1"], 0, "1"),  # nothing else is left: it is here sooner than the one that is started
        (["3", "1"], ["1", "3"], 1, "1"),  # a shard that lost its worker comes before those that did not begin
        (["3", "4", "1"], ["1", "3", "4"], 0, "1"),  # and the worker that is started is for the one before
        ([], [], 1, None),
    ],
)
def test_a_free_worker_takes_a_shard_that_nobody_starts_a_worker_for(
    waiting: list[str], order: list[str], running: int, chosen: str | None
) -> None:
    assert next_shard(waiting, order, running, slots=2) == chosen


def test_tunes_trials_are_shards_that_wait_or_run() -> None:
    trials = [SimpleNamespace(trial_id=name, status="PENDING") for name in "01234"]
    controller: Any = SimpleNamespace(get_trials=lambda: trials[:3])
    queue = shard_queue(2)
    trials[0].status = trials[1].status = "RUNNING"
    assert queue.choose_trial_to_run(controller) is trials[2]
    trials[0].status = "PENDING"  # its worker died; one is started for the shard that waited already
    assert queue.choose_trial_to_run(controller) is trials[0]
    trials[1].status = "TERMINATED"
    assert queue.choose_trial_to_run(controller) is trials[0]
    trials[2].status = "RUNNING"
    trials[0].status = "TERMINATED"
    assert queue.choose_trial_to_run(controller) is None
