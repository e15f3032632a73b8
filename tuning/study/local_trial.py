"""A trial that trains in this process: a generator of steps, and states that other trials can start from."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tuning.basics.wording import raised, stack
from tuning.errors import StudyError
from tuning.notes import EndCode
from tuning.steps import Step
from tuning.study.interfaces import Configuration
from tuning.study.trial import Exploit, Trial

#: (config, number of the trial, state) -> the generator of its steps. The state is None, or what a
#: `get_state` of the same family returned; several trials may start from the same state object, so a
#: generator must not change it.
StartTraining = Callable[[Configuration, int, object], Iterable[Step]]
#: No further step; None may be what a generator yields by mistake.
END = Step(0, math.nan)


@dataclass(slots=True, eq=False, repr=False)
class LocalTrial(Trial):
    """A trial and its generator.

    steps_run: steps really trained for this trial. get_state: gives the state after the last step, where the training
    code offers it.
    """

    steps_run: int = 0
    get_state: Callable[[], object] | None = None
    _snapshot: Snapshot | None = None
    _generator: Iterator[Step] | None = None
    _inherited: object = None

    def begin_from(self, state: object) -> None:
        """Let the training go on from a state, its own or another trial's."""
        self._inherited = state

    def snapshot(self, *, reused: bool = False) -> Snapshot:
        """Return where the trial stands now; the same object until its next step. reused: see `Snapshot`."""
        if self._snapshot is None or self._snapshot.steps_run != self.steps_run:
            self._snapshot = Snapshot(self, reused=reused)
        return self._snapshot

    def take_over(self, donor: DonorState, config: dict[str, object]) -> None:
        """Go on from another trial's state, with another configuration."""
        self._close_generator()
        self.config = config
        self._inherited = donor.state
        self._snapshot = self.get_state = None
        self.steps, self.step_seconds = list(donor.steps), [0.0] * len(donor.steps)
        self.lineage = (*donor.lineage, Exploit(donor.step, donor.number))
        self.schedule = (*donor.schedule, (donor.step, dict(config)))

    def pull(self, start: StartTraining) -> Step | None:
        """Return the next step of training; None at the end, and after an exception (then the trial has failed)."""
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
            self.fail(EndCode.RAISED(type(error).__name__, error=raised(error)), stack(error))
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
        if self._snapshot is not None:
            self._snapshot.forget()

    def _close_generator(self) -> None:
        """Drop the generator and with it everything that training holds."""
        generator, self._generator = self._generator, None
        close = getattr(generator, "close", None)
        if close is not None:
            with contextlib.suppress(Exception):  # the trial's steps are valid, whatever its clean-up does
                close()


def is_ctrl_c(error: BaseException) -> bool:
    """Return whether Ctrl-C stops this process. In a worker, training has its own thread, and raised it itself."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


@dataclass(frozen=True, slots=True)
class DonorState:
    """The part of a trial that another trial takes over.

    number: of the trial. state: what `Step.get_state` gave after `step` steps. steps, lineage, schedule: see `Trial`.
    """

    number: int
    step: int
    state: object
    steps: tuple[Step, ...]
    lineage: tuple[Exploit, ...]
    schedule: tuple[tuple[int, Configuration], ...]


class Snapshot:
    """A trial's state after a step, which is read only when another trial needs it; that is rare.

    It must be read or kept before the trial goes on. reused: a scheduler hands it out again later, when its trial has
    gone on. steps_run: of the trial when this was made.
    """

    __slots__ = ("_kept", "_trial", "reused", "steps_run")

    def __init__(self, trial: LocalTrial, *, reused: bool) -> None:
        self._trial: LocalTrial | None = trial
        self._kept: DonorState | None = None
        self.reused, self.steps_run = reused, trial.steps_run

    def __copy__(self) -> DonorState:
        """Ray's PBT copies a checkpoint at the moment of an exploit: this is when the state is needed."""
        if self.reused:
            self.keep()
        return self.read()

    def read(self) -> DonorState:
        """Return the state that is kept, else the one that the trial has now; `StudyError` when there is none."""
        if self._kept is not None:
            return self._kept
        trial = self._trial
        if trial is None:
            raise StudyError(EndCode.STATE_OF_ENDED_TRIAL())
        if trial.get_state is None:
            raise StudyError(EndCode.NO_STATE(trial.family, trial=trial.number))
        step = trial.steps[-1].step
        try:
            state = trial.get_state()
        except Exception as error:
            raise StudyError(EndCode.STATE_FAILED(trial=trial.number, step=step, error=raised(error))) from error
        return DonorState(trial.number, step, state, tuple(trial.steps), trial.lineage, trial.schedule)

    def keep(self) -> None:
        """Read the state and hold it, because the trial may go on before it is needed."""
        self._kept = self.read()

    def forget(self) -> None:
        """Drop the state of a trial that has ended."""
        self._trial = self._kept = None
