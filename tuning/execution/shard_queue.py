"""Which shard a free worker takes: those that learn from others wait for them, and some are left for another worker.

Tune gives a worker that is through with its shard to the first shard that waits. That is often the one for which it
is just starting a process, after a crash; it then ends that process, seconds of work, and starts one for another shard.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.tune.experiment import Trial
    from ray.tune.search.search_algorithm import SearchAlgorithm


def next_shard(waiting: Sequence[str], order: Collection[str], running: int, slots: int) -> str | None:
    """The shard for a worker that is free; None when none waits.

    waiting: shards without a worker, those that wait longest first; for these workers are started first. order: the
    same in the order in which they should run. running: shards that are worked on. slots: workers at once.
    """
    starting = max(0, slots - running - 1)  # the workers that are missing, without the free one
    free = {*(waiting[starting:] or waiting[-1:])}
    return next((shard for shard in order if shard in free), None)


def shards_in_turn(slots: int, first: int, held: int) -> SearchAlgorithm:
    """A `ray.tune` search algorithm that gives out shards in their order, some not before others have ended.

    slots: shards at once. first: how many shards must have ended before the last ones begin. held: how many those are.
    Those in between wait for nobody, and keep the slots busy meanwhile.
    """
    from ray.tune.search import BasicVariantGenerator

    class InTurn(BasicVariantGenerator):
        def __init__(self) -> None:
            super().__init__(max_concurrent=slots)
            self._given = 0
            self._first: set[str] = set()

        def next_trial(self) -> Trial | None:
            if self._first and self._given >= self.total_samples - held:
                return None
            trial: Trial | None = super().next_trial()
            if trial is not None:
                if self._given < first:
                    self._first.add(trial.trial_id)
                self._given += 1
            return trial

        def on_trial_complete(self, trial_id: str, result: object = None, error: bool = False) -> None:
            super().on_trial_complete(trial_id, result, error)
            self._first.discard(trial_id)

    return InTurn()


def shard_queue(slots: int) -> Any:
    """A `ray.tune` scheduler that runs shards in their order and leaves alone those whose worker is being started."""
    from ray.tune.experiment import Trial
    from ray.tune.schedulers import FIFOScheduler

    class Queue(FIFOScheduler):
        def __init__(self) -> None:
            super().__init__()
            self._waiting: list[str] = []

        def choose_trial_to_run(self, tune_controller: Any) -> Any:
            trials = tune_controller.get_trials()
            pending = {trial.trial_id: trial for trial in trials if trial.status == Trial.PENDING}
            known = dict.fromkeys(name for name in self._waiting if name in pending)
            self._waiting = [*known, *(name for name in pending if name not in known)]
            running = sum(trial.status == Trial.RUNNING for trial in trials)
            chosen = next_shard(self._waiting, pending, running, slots)
            return None if chosen is None else pending[chosen]

    return Queue()
