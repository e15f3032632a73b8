"""Why a run ends before its studies do: a signal, a budget that is used up, another owner, workers that cannot work."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tuning.driver.signals import Signals
from tuning.execution.callback_keys import Key, lookup
from tuning.execution.lost_nodes import NodeWatch, error_text, worker_died
from tuning.records.lease import Lease

if TYPE_CHECKING:
    from ray import tune
    from ray.actor import ActorHandle
    from ray.tune.experiment import Trial


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
    actors: dict[str, ActorHandle] = field(default_factory=dict)
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

    def worker_started(self, trial: Trial) -> None:
        """Keep the handle of a trial's worker."""
        self.actors[trial.trial_id] = trial.temporary_state.ray_actor

    def worker_ended(self, trial: Trial) -> None:
        """Forget the handle of a trial's worker."""
        self.actors.pop(trial.trial_id, None)

    def worker_reported(self, trial: Trial) -> None:
        """A worker has reported something: it works."""
        self.failures.pop(trial.trial_id, None)
        self.idle = 0

    def worker_failed(self, trial: Trial) -> None:
        """A worker died, or could not even start; Tune starts the trial again."""
        self.failures[trial.trial_id] += 1
        if self.failures[trial.trial_id] > self.patience:
            self.broken = _last_error(trial)

    def trial_failed(self, trial: Trial) -> None:
        """Tune does not start a trial again. When its worker could not begin, its study may not be to blame."""
        if worker_died(error_text(trial)):
            return
        self.idle += 1
        if self.idle > self.patience:
            self.broken = _last_error(trial)

    def end_workers(self) -> None:
        """Kill what Tune has started and not stopped itself; their studies go on elsewhere or later."""
        if not self.actors:
            return
        import ray

        for trial, actor in list(self.actors.items()):
            with contextlib.suppress(Exception):
                ray.kill(actor)
            self.actors.pop(trial, None)


def _last_error(trial: Trial) -> str:
    """What an error file of Tune comes to in one line."""
    lines = [line.strip() for line in error_text(trial).splitlines()]
    errors = [line for line in lines if re.match(r"[A-Za-z_.]+(Error|Exception|Exit)\b", line)]
    return (errors or [line for line in lines if line] or ["no reason is known"])[-1][:500]


def stopper(halt: Key[StopConditions]) -> tune.Stopper:
    """A `ray.tune.Stopper` that stops all trials when the run should stop; it raises `MachinesLostError`."""
    from ray import tune

    class Stopper(tune.Stopper):
        def __call__(self, trial_id: str, result: object) -> bool:
            return False

        def stop_all(self) -> bool:
            conditions = lookup(halt)
            conditions.machines.check()
            return conditions.wanted

    return Stopper()


def workers_callback(halt: Key[StopConditions]) -> tune.Callback:
    """A `ray.tune.Callback` that tells `StopConditions` what becomes of the workers."""
    from ray import tune

    class Workers(tune.Callback):
        def on_trial_start(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
            lookup(halt).worker_started(trial)

        def on_trial_result(self, iteration: int, trials: object, trial: Trial, result: object, **info: object) -> None:
            lookup(halt).worker_reported(trial)

        def on_trial_recover(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
            lookup(halt).worker_failed(trial)

        def on_trial_error(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
            lookup(halt).trial_failed(trial)

        def on_trial_complete(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
            lookup(halt).worker_ended(trial)

    return Workers()
