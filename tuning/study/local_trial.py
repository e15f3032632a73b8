"""A trial that trains in this process: a generator of steps, and states that other trials can start from."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tuning.errors import StudyError
from tuning.steps import Step
from tuning.study.interfaces import Configuration
from tuning.study.trial import Exploit, Trial
from tuning.wording import raised, stack

#: (config, number of the trial, state) -> the generator of its steps. The state is None, or what a
#: `get_state` of the same family returned; several trials may start from the same state object, so a
#: generator must not change it.
Start = Callable[[Configuration, int, Any], Iterable[Step]]
#: No further step; None may be what a generator yields by mistake.
END = Step(0, math.nan)


class LocalTrial(Trial):
    """A trial and its generator.

    steps_run: steps really trained for this trial.

    Ray's schedulers reach through `run_metadata.checkpoint_manager` and `temporary_state`; the trial itself plays all
    of these parts.
    """

    num_to_keep = None
    saving_to = None
    is_saving = False

    __slots__ = ("_generator", "_inherited", "get_state", "saved", "steps_run")

    def __init__(self, number: int, trial_id: str, config: dict[str, object], family: str) -> None:
        super().__init__(number, trial_id, config, family)
        self.steps_run = 0
        self.get_state: Callable[[], object] | None = None
        self.saved: Snapshot | None = None
        self._generator: Iterator[Step] | None = None
        self._inherited: object = None

    def begin_from(self, state: object) -> None:
        """Let its training go on from a state of its own, or of another trial."""
        self._inherited = state

    def set_config(self, config: dict[str, object]) -> None:
        self.config = config

    def set_experiment_tag(self, tag: str) -> None:
        self.experiment_tag = tag

    @property
    def run_metadata(self) -> LocalTrial:
        return self

    @property
    def checkpoint_manager(self) -> LocalTrial:
        return self

    @property
    def checkpoint_config(self) -> LocalTrial:
        return self

    @property
    def temporary_state(self) -> LocalTrial:
        return self

    @property
    def checkpoint(self) -> Snapshot:
        """Where this trial stands: a state that another trial can start from."""
        if self.saved is None or self.saved.at != self.steps_run:
            self.saved = Snapshot(self)
        return self.saved

    @property
    def _latest_checkpoint_result(self) -> None:
        return None

    @_latest_checkpoint_result.setter
    def _latest_checkpoint_result(self, result: Any) -> None:
        """An exploit: Ray's PBT sets this, after `set_config`, to let a trial go on from a donor's state."""
        donor: Snapshot = result.checkpoint
        self._close_generator()
        self._inherited = donor.state
        self.saved = self.get_state = None
        self.steps, self.step_seconds = list(donor.steps), [0.0] * len(donor.steps)
        self.lineage = (*donor.lineage, Exploit(donor.step, donor.number))
        self.schedule = (*donor.schedule, (donor.step, dict(self.config)))

    def pull(self, start: Start) -> Step | None:
        """The next step of training; None at the end, and after an exception (then the trial has failed)."""
        wall, cpu = time.perf_counter(), time.process_time()
        known: float | None = None
        try:
            if self._generator is None:
                inherited, self._inherited = self._inherited, None
                self._generator = iter(start(dict(self.config), self.number, inherited))
            step = next(self._generator, END)
            if step is END:
                return None
            float(step.score)  # raises where it is no number
            known = step.seconds
            self.get_state = step.get_state
            if step.get_state is not None:  # it may hold a whole model; only the last one is ever asked for
                step = Step(step.step, step.score, step.fold_scores, step.metrics)
        except StudyError:
            raise
        except BaseException as error:  # sys.exit(), or the panic of a Rust library: it must not end the worker
            if is_ctrl_c(error):
                raise
            self.fail(raised(error), stack(error))
            return None
        finally:
            self.fit_seconds += time.process_time() - cpu
            self.seconds += time.perf_counter() - wall if known is None else known
        self.steps_run += 1
        self.steps.append(step)
        self.step_seconds.append(self.seconds)
        return step

    def release(self) -> None:
        self._close_generator()
        self.get_state = self._inherited = None
        if self.saved is not None:
            self.saved.forget()

    def _close_generator(self) -> None:
        """Drop the generator and with it everything that training holds."""
        generator, self._generator = self._generator, None
        close = getattr(generator, "close", None)
        if close is not None:
            with contextlib.suppress(Exception):  # the trial's steps are valid, whatever its clean-up does
                close()


def is_ctrl_c(error: BaseException) -> bool:
    """Whether somebody stops this process; on a worker, training has a thread of its own and raises that itself."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


class Snapshot:
    """A trial's state after a step, read only when somebody takes it: most are never taken."""

    __slots__ = ("_trial", "at", "lineage", "number", "schedule", "state", "step", "steps", "taken")

    def __init__(self, trial: LocalTrial) -> None:
        self.at, self.number = trial.steps_run, trial.number
        self.forget(trial)

    def forget(self, trial: LocalTrial | None = None) -> None:
        """Drop what was read; trial: whose state can still be read."""
        self._trial = trial
        self.taken = False
        self.state: object = None
        self.step = 0
        self.steps: tuple[Step, ...] = ()
        self.lineage: tuple[Exploit, ...] = ()
        self.schedule: tuple[tuple[int, Configuration], ...] = ()

    def take(self) -> Snapshot:
        """Read the state, before the trial goes on."""
        trial = self._trial
        if self.taken or trial is None:
            return self
        if trial.get_state is None:
            raise StudyError(
                f"the training code of family {trial.family!r} gives no `Step.get_state`, so that trial "
                f"{trial.number} cannot pass its model to another trial; use a scheduler that needs no state "
                "(docs/schedulers.md)."
            )
        try:
            self.state = trial.get_state()
        except Exception as error:
            raise StudyError(
                f"`Step.get_state` of trial {trial.number} failed at step {trial.steps[-1].step}: {raised(error)}"
            ) from error
        self.step, self.taken = trial.steps[-1].step, True
        self.steps, self.lineage, self.schedule = tuple(trial.steps), trial.lineage, trial.schedule
        return self

    def __copy__(self) -> Snapshot:
        """Ray's PBT copies a checkpoint at the moment of an exploit: this is when a state is needed."""
        self.take()
        copied = Snapshot.__new__(Snapshot)
        for name in Snapshot.__slots__:
            setattr(copied, name, getattr(self, name))
        if not getattr(self._trial and self._trial.scheduler, "reuses_snapshots", True):
            self.forget(self._trial)
        return copied
