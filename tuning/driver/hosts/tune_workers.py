"""The workers that Tune has started for a run: what they report, how they end, and when they or machines are lost.

Tune waits without an end or a word when all machines are gone.
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import ray
from ray import tune

from tuning.basics.wording import amount
from tuning.driver.hosts.base import StopConditions
from tuning.execution.bridge import Uncopied
from tuning.execution.reports import Listener, TuneResult, error_text, hand_on, report_in, worker_died

if TYPE_CHECKING:
    from ray.actor import ActorHandle
    from ray.tune.experiment import Trial


logger = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
PATIENCE_S = 15.0  # a cluster that restarts, or one that gets another last machine


class MachinesLostError(Exception):
    """No machine of the cluster is alive."""


@dataclass
class NodeWatch:
    """Looks now and then; `check` is cheap enough to be called at every step of Tune's loop.

    lost: names of machines that are gone; it is told of each.
    """

    lost: list[str] = field(default_factory=list)
    _next: float = field(default_factory=time.monotonic)
    _gone_since: float | None = None
    _alive: dict[str, str] = field(default_factory=dict)  # names by id

    def check(self) -> None:
        """Raise `MachinesLostError` when no machine has been alive for a while."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + LOOK_EVERY_S
        if alive := alive_nodes():
            self._gone_since = None
            for gone in self._alive.keys() - alive.keys():
                self.lost.append(self._alive[gone])
                logger.warning("machine %s of the Ray cluster is gone; what it was at goes on elsewhere", self.lost[-1])
            self._alive = alive
        elif self._gone_since is None:
            self._gone_since = now
        elif now - self._gone_since >= PATIENCE_S:
            raise MachinesLostError(f"no machine of the Ray cluster has been alive for {amount(PATIENCE_S, 'second')}")


def alive_nodes() -> dict[str, str]:
    """Return the machines that Ray calls alive, names by id; none where it does not answer."""
    import ray

    try:
        return {node["NodeID"]: node["NodeName"] for node in ray.nodes() if node["Alive"]}
    except Exception:  # its head does not answer
        return {}


@dataclass(eq=False)
class TuneWorkers(Uncopied, tune.Callback, tune.Stopper):
    """The workers of a run's Tuners, of which it is a callback and the `Stopper`.

    Attributes:
        halt: ends the Tuner; its `broken` is set here.
        listener: is handed each report of a worker.
        patience: how often a worker may die in a row without a report; Tune itself would start it again for ever.
        machines: ends the Tuner when all machines are gone.
        actors: handles of the workers, by the id of their Tune trial.
        failures: deaths in a row without a report, by Tune trial.
        idle: Tune trials in a row with workers that could not even begin.
    """

    halt: StopConditions
    listener: Listener
    patience: int = 10
    machines: NodeWatch = field(default_factory=NodeWatch)
    actors: dict[str, ActorHandle] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    idle: int = 0

    def __call__(self, trial_id: str, result: object) -> bool:
        return False

    def stop_all(self) -> bool:
        """Return whether the run should stop. Raises `MachinesLostError`."""
        self.machines.check()
        return self.halt.wanted

    def on_trial_start(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
        self.actors[trial.trial_id] = trial.temporary_state.ray_actor

    def on_trial_complete(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
        self.actors.pop(trial.trial_id, None)

    def on_trial_result(self, iteration: int, trials: object, trial: Trial, result: TuneResult, **info: object) -> None:
        if (report := report_in(result)) is not None:
            hand_on(self.listener, report)
        self.failures.pop(trial.trial_id, None)
        self.idle = 0

    def on_trial_recover(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
        """Count a worker that died, or could not even start; Tune starts the trial again."""
        self.failures[trial.trial_id] += 1
        if self.failures[trial.trial_id] > self.patience:
            self.halt.broken = _last_error(trial)

    def on_trial_error(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
        """Tune does not start a trial again. When its worker could not begin, its study may not be to blame."""
        if worker_died(error_text(trial)):
            return
        self.idle += 1
        if self.idle > self.patience:
            self.halt.broken = _last_error(trial)

    def kill(self) -> None:
        """Kill what Tune has started and not stopped itself; their studies go on elsewhere or later."""
        for trial, actor in list(self.actors.items()):
            with contextlib.suppress(Exception):
                ray.kill(actor)
            self.actors.pop(trial, None)


def _last_error(trial: Trial) -> str:
    """Return what an error file of Tune comes to in one line."""
    lines = [line.strip() for line in error_text(trial).splitlines()]
    errors = [line for line in lines if re.match(r"[A-Za-z_.]+(Error|Exception|Exit)\b", line)]
    return (errors or [line for line in lines if line] or ["no reason is known"])[-1][:500].rstrip(".")
