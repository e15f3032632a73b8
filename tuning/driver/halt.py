"""Why a run ends before its studies do: a signal, a budget that is used up, another owner, workers that cannot work."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tuning.driver.signals import Signals
from tuning.execution.cluster import NodeWatch, error_text, worker_died
from tuning.records.lease import Lease

_HALTS: dict[str, StopConditions] = {}


@dataclass
class StopConditions:
    """Asked at every step of Tune's loop whether to stop.

    seconds: what the run may still take, None without a limit. patience: how often a shard's worker may die in a row
    without having reported anything; Tune itself would start it again for ever. broken: why workers cannot work.
    """

    lease: Lease
    signals: Signals
    seconds: float | None = None
    patience: int = 10
    broken: str = ""
    actors: dict[str, Any] = field(default_factory=dict)
    machines: NodeWatch = field(default_factory=NodeWatch)
    failures: Counter[str] = field(default_factory=Counter)
    idle: int = 0  # trials in a row whose workers could not even begin

    @property
    def interrupted(self) -> int:
        """The number of the signal that wants the run to stop; 0 without one."""
        return self.signals.received

    @property
    def used_up(self) -> bool:
        """True when the run has had its time."""
        return self.seconds is not None and self.lease.seconds >= self.seconds

    @property
    def wanted(self) -> bool:
        """True when the run should stop now."""
        return bool(self.interrupted or self.lease.taken_by or self.used_up or self.broken)

    def failed(self, trial: str, error: str) -> None:
        """A worker died, or could not even start."""
        self.failures[trial] += 1
        if self.failures[trial] > self.patience:
            self.broken = error

    def could_not_begin(self, error: str) -> None:
        """A trial has ended because its worker could not begin: no fault of its study if others cannot."""
        self.idle += 1
        if self.idle > self.patience:
            self.broken = error

    def end_workers(self) -> None:
        """Kill what Tune has started and not stopped itself; their studies go on elsewhere or later."""
        if not self.actors:
            return
        import ray

        for trial, actor in list(self.actors.items()):
            with contextlib.suppress(Exception):
                ray.kill(actor)
            self.actors.pop(trial, None)


@contextlib.contextmanager
def halting(halt: StopConditions) -> Iterator[str]:
    """Register a halt for the time of a run; gives the key that `stopper` and `workers_callback` take.

    Ray pickles stoppers and callbacks when a Tuner is made; a key travels, a lease would not.
    """
    key = uuid.uuid4().hex
    _HALTS[key] = halt
    try:
        yield key
    finally:
        del _HALTS[key]


def wanted(key: str) -> bool:
    """Whether the halt of a key wants the run to stop."""
    return key in _HALTS and _HALTS[key].wanted


def look_for_machines(key: str) -> None:
    """Raise `MachinesLostError` when Ray has none any more."""
    if key in _HALTS:
        _HALTS[key].machines.check()


def note_worker(key: str, trial: Any, *, ended: bool = False) -> None:
    """Keep the handle of a trial's worker, or forget it."""
    if key in _HALTS:
        actors = _HALTS[key].actors
        actors.pop(trial.trial_id, None)
        if not ended:
            actors[trial.trial_id] = trial.temporary_state.ray_actor


def note_result(key: str, trial: Any) -> None:
    """A worker has reported something: it works."""
    if key in _HALTS:
        _HALTS[key].failures.pop(trial.trial_id, None)
        _HALTS[key].idle = 0


def note_failure(key: str, trial: Any) -> None:
    """Tune starts a trial again whose worker died."""
    if key in _HALTS:
        _HALTS[key].failed(trial.trial_id, _told(trial))


def note_end(key: str, trial: Any) -> None:
    """Tune does not start a trial again."""
    if key in _HALTS and not worker_died(error_text(trial)):
        _HALTS[key].could_not_begin(_told(trial))


def _told(trial: Any) -> str:
    """What an error file of Tune comes to in one line."""
    lines = [line.strip() for line in error_text(trial).splitlines()]
    errors = [line for line in lines if re.match(r"[A-Za-z_.]+(Error|Exception|Exit)\b", line)]
    return (errors or [line for line in lines if line] or ["no reason is known"])[-1][:500]


def stopper(key: str) -> Any:
    """A `ray.tune.Stopper` that stops all trials when the halt of a key wants it; it raises `MachinesLostError`."""
    from ray import tune

    class Stopper(tune.Stopper):
        def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
            return False

        def stop_all(self) -> bool:
            look_for_machines(key)
            return wanted(key)

    return Stopper()


def workers_callback(key: str) -> Any:
    """A `ray.tune.Callback` that keeps the handles of the workers for `StopConditions.end_workers`."""
    from ray import tune

    class Workers(tune.Callback):
        def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            note_worker(key, trial)

        def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:
            note_result(key, trial)

        def on_trial_recover(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            note_failure(key, trial)

        def on_trial_error(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            note_end(key, trial)

        def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            note_worker(key, trial, ended=True)

    return Workers()
