"""The workers that Tune has started for a run: how they are ended, and when they die too often."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tuning.driver.halt import StopConditions
from tuning.driver.progress import hand_on
from tuning.execution.callback_keys import CallbackKey, lookup
from tuning.execution.lost_nodes import NodeWatch, error_text, worker_died
from tuning.execution.reports import Listener
from tuning.execution.tune_reports import TuneResult, report_in

if TYPE_CHECKING:
    from ray import tune
    from ray.actor import ActorHandle
    from ray.tune.experiment import Trial


@dataclass
class TuneWorkers:
    """The workers of a Tuner.

    Attributes:
        halt: ends the Tuner; its `broken` is set here.
        patience: how often a worker may die in a row without a report; Tune itself would start it again for ever.
        actors: handles of the workers, by the id of their Tune trial.
        machines: ends the Tuner when all machines are gone.
        failures: deaths in a row without a report, by Tune trial.
        idle: Tune trials in a row whose workers could not even begin.
    """

    halt: StopConditions
    patience: int = 10
    actors: dict[str, ActorHandle] = field(default_factory=dict)
    machines: NodeWatch = field(default_factory=NodeWatch)
    failures: Counter[str] = field(default_factory=Counter)
    idle: int = 0

    def started(self, trial: Trial) -> None:
        """Keep the handle of a trial's worker."""
        self.actors[trial.trial_id] = trial.temporary_state.ray_actor

    def ended(self, trial: Trial) -> None:
        """Forget the handle of a trial's worker."""
        self.actors.pop(trial.trial_id, None)

    def reported(self, trial: Trial) -> None:
        """A worker has reported something: it works."""
        self.failures.pop(trial.trial_id, None)
        self.idle = 0

    def died(self, trial: Trial) -> None:
        """A worker died, or could not even start; Tune starts the trial again."""
        self.failures[trial.trial_id] += 1
        if self.failures[trial.trial_id] > self.patience:
            self.halt.broken = _last_error(trial)

    def failed(self, trial: Trial) -> None:
        """Tune does not start a trial again. When its worker could not begin, its study may not be to blame."""
        if worker_died(error_text(trial)):
            return
        self.idle += 1
        if self.idle > self.patience:
            self.halt.broken = _last_error(trial)

    def kill(self) -> None:
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
    return (errors or [line for line in lines if line] or ["no reason is known"])[-1][:500].rstrip(".")


def stopper(workers: CallbackKey[TuneWorkers]) -> tune.Stopper:
    """A `ray.tune.Stopper` that stops all trials when the run should stop; it raises `MachinesLostError`."""
    from ray import tune

    class RunStopper(tune.Stopper):
        def __call__(self, trial_id: str, result: object) -> bool:
            return False

        def stop_all(self) -> bool:
            found = lookup(workers)
            found.machines.check()
            return found.halt.wanted

    return RunStopper()


def workers_callback(workers: CallbackKey[TuneWorkers]) -> tune.Callback:
    """A `ray.tune.Callback` that tells `TuneWorkers` what becomes of the workers."""
    from ray import tune

    class Workers(tune.Callback):
        def on_trial_start(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
            lookup(workers).started(trial)

        def on_trial_result(self, iteration: int, trials: object, trial: Trial, result: object, **info: object) -> None:
            lookup(workers).reported(trial)

        def on_trial_recover(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
            lookup(workers).died(trial)

        def on_trial_error(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
            lookup(workers).failed(trial)

        def on_trial_complete(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
            lookup(workers).ended(trial)

    return Workers()


def reports_callback(listener: CallbackKey[Listener]) -> tune.Callback:
    """A `ray.tune.Callback` that hands each report of a worker to a listener."""
    from ray import tune

    class Reports(tune.Callback):
        def on_trial_result(
            self, iteration: int, trials: object, trial: Trial, result: TuneResult, **info: object
        ) -> None:
            if (report := report_in(result)) is not None:
                hand_on(lookup(listener), report)

    return Reports()
