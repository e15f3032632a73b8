"""Trials as the in-process driver sees them: light enough for thousands, enough for every Ray scheduler."""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tuning.errors import StudyError
from tuning.steps import Step

if TYPE_CHECKING:
    from tuning.study.controller_view import ControllerView

#: (config, number of the trial, state) -> the generator of its steps. The state is None, or what a
#: `get_state` of the same family returned; several trials may start from the same state object, so a
#: generator must not change it.
Start = Callable[[Mapping[str, Any], int, Any], Iterable[Step]]

_END = object()


@dataclass(frozen=True, slots=True)
class Exploit:
    """A trial took over another's model: after `step` steps, from trial number `donor`."""

    step: int
    donor: int


@dataclass(frozen=True, slots=True)
class FinishedTrial:
    """What came of one trial.

    number, config, family: which trial; `config` is the one in force at its end.
    state: "finished" (it had its full budget, or more would not have helped), "stopped" or "failed".
    reason: why it was stopped or failed; of a finished one, the rule that ended it, else empty.
    steps: the way to the trial's last model, without `get_state`: after an exploit the donor's steps up to
        there, then its own.
    step_seconds: for each of its own steps, active wall seconds since it began (0.0 for a donor's).
    best: position in `steps` of the step that counts, None without steps; score: of that step.
    suggested, told: positions in the study's sequence of suggestions and completions.
    started: epoch seconds. seconds: active wall time. fit_seconds: CPU time in the training code.
    suggest_seconds: wall time in the searcher. steps_run: steps really trained for this trial.
    error: traceback of a failed trial.
    lineage: the exploits on the way to the last model.
    schedule: (steps done before, config) in order: refitting the last model means training with each config
        from its step on. Empty without an exploit: `config` is the whole story.
    """

    number: int
    config: Mapping[str, Any]
    family: str
    state: str
    reason: str
    steps: tuple[Step, ...]
    step_seconds: tuple[float, ...]
    best: int | None
    score: float | None
    suggested: int
    told: int
    started: float
    seconds: float
    fit_seconds: float
    suggest_seconds: float
    steps_run: int
    error: str | None = None
    lineage: tuple[Exploit, ...] = ()
    schedule: tuple[tuple[int, Mapping[str, Any]], ...] = ()


class AnyStep(Protocol):
    """A step as records and generators have it."""

    @property
    def step(self) -> int: ...
    @property
    def score(self) -> float: ...


@dataclass(frozen=True, slots=True)
class EarlierTrial:
    """A trial recorded by an earlier attempt, to be replayed; fields as in `FinishedTrial`."""

    number: int
    config: Mapping[str, Any]
    steps: Sequence[AnyStep]
    state: str
    seconds: float = 0.0


class Trial:
    """A running, paused or ended trial, with the attributes of Ray's `Trial` that Ray's schedulers touch.

    Hashable by identity. Ray's schedulers reach through `run_metadata.checkpoint_manager` and
    `temporary_state`; the trial itself plays all of these parts.
    """

    PENDING, RUNNING, PAUSED, TERMINATED, ERROR = "PENDING", "RUNNING", "PAUSED", "TERMINATED", "ERROR"

    num_to_keep = None
    saving_to = None
    is_saving = False

    __slots__ = (
        "_inherited",
        "config",
        "error",
        "evaluated_params",
        "experiment_tag",
        "failure",
        "family",
        "fit_seconds",
        "generator",
        "get_state",
        "last_result",
        "lineage",
        "number",
        "saved",
        "schedule",
        "scheduler",
        "seconds",
        "started",
        "status",
        "step_seconds",
        "steps",
        "steps_run",
        "suggest_seconds",
        "suggested",
        "trial_id",
        "view",
    )

    def __init__(self, number: int, trial_id: str, config: dict[str, Any], family: str, view: ControllerView) -> None:
        self.number, self.trial_id, self.config, self.family = number, trial_id, config, family
        self.status = Trial.PENDING
        self.experiment_tag = trial_id
        self.evaluated_params: dict[str, Any] = {}
        self.last_result: dict[str, Any] = {}
        self.steps: list[Step] = []
        self.step_seconds: list[float] = []
        self.steps_run = self.suggested = 0
        self.lineage: tuple[Exploit, ...] = ()
        self.schedule: tuple[tuple[int, Mapping[str, Any]], ...] = ()
        self.generator: Any = None
        self.get_state: Callable[[], object] | None = None
        self.saved: Snapshot | None = None
        self._inherited: Any = None
        self.error: str | None = None
        self.failure = ""
        self.started = self.seconds = self.fit_seconds = self.suggest_seconds = 0.0
        self.view = view
        self.scheduler: Any = view.scheduler

    def __str__(self) -> str:
        return self.trial_id

    __repr__ = __str__

    def is_finished(self) -> bool:
        return self.status in (Trial.TERMINATED, Trial.ERROR)

    def set_config(self, config: dict[str, Any]) -> None:
        self.config = config

    def set_experiment_tag(self, tag: str) -> None:
        self.experiment_tag = tag

    @property
    def run_metadata(self) -> Trial:
        return self

    @property
    def checkpoint_manager(self) -> Trial:
        return self

    @property
    def checkpoint_config(self) -> Trial:
        return self

    @property
    def temporary_state(self) -> Trial:
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
        self.release()
        self._inherited = donor.state
        self.saved = self.get_state = None
        self.steps, self.step_seconds = list(donor.steps), [0.0] * len(donor.steps)
        self.lineage = (*donor.lineage, Exploit(donor.step, donor.number))
        self.schedule = (*donor.schedule, (donor.step, dict(self.config)))

    def pull(self, start: Start) -> Step | None:
        """The next step of training; None at the end, and after an exception (then `error` is set)."""
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            if self.generator is None:
                inherited, self._inherited = self._inherited, None
                self.generator = iter(start(dict(self.config), self.number, inherited))
            step: Any = next(self.generator, _END)
            if step is _END:
                return None
            float(step.score)
            self.get_state = step.get_state
            if step.get_state is not None:  # it may hold a whole model; only the last one is ever asked for
                step = Step(step.step, step.score, step.fold_scores, step.metrics)
        except StudyError:
            raise
        except BaseException as raised:  # sys.exit(), or the panic of a Rust library: it must not end the worker
            if is_ctrl_c(raised):
                raise
            self.failure = " ".join(f"{type(raised).__name__}: {raised}".split())[:500]
            self.error = traceback.format_exc()
            return None
        finally:
            self.fit_seconds += time.process_time() - cpu
            self.seconds += time.perf_counter() - wall
        self.steps_run += 1
        self.steps.append(step)
        self.step_seconds.append(self.seconds)
        return step

    def release(self) -> None:
        """Drop the generator and with it everything that training holds."""
        generator, self.generator = self.generator, None
        close = getattr(generator, "close", None)
        if close is not None:
            with contextlib.suppress(Exception):  # the trial's steps are valid, whatever its clean-up does
                close()

    def drop_state(self) -> None:
        """The trial has ended: nobody will start from it."""
        self.release()
        self.get_state = self._inherited = None
        if self.saved is not None:
            self.saved.forget()


def is_ctrl_c(raised: BaseException) -> bool:
    """Whether somebody stops this process; on a worker, training has a thread of its own and raises that itself."""
    return isinstance(raised, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


class Snapshot:
    """A trial's state after a step, read only when somebody takes it: most are never taken."""

    __slots__ = ("_trial", "at", "lineage", "number", "schedule", "state", "step", "steps", "taken")

    def __init__(self, trial: Trial) -> None:
        self._trial: Trial | None = trial
        self.at, self.number = trial.steps_run, trial.number
        self.forget(trial)

    def forget(self, trial: Trial | None = None) -> None:
        self._trial = trial
        self.taken = False
        self.state: Any = None
        self.step = 0
        self.steps: tuple[Step, ...] = ()
        self.lineage: tuple[Exploit, ...] = ()
        self.schedule: tuple[tuple[int, Mapping[str, Any]], ...] = ()

    def take(self) -> Snapshot:
        """Read the state, before the trial goes on."""
        trial = self._trial
        if self.taken or trial is None:
            return self
        if trial.get_state is None:
            raise StudyError(
                f"the training code of family {trial.family!r} gives no `Step.get_state`, so that trial "
                f"{trial.number} cannot hand its model to another one; use a scheduler that needs no state "
                "(docs/schedulers.md)."
            )
        try:
            self.state = trial.get_state()
        except Exception as error:
            raise StudyError(
                f"`Step.get_state` of trial {trial.number} failed at step {trial.steps[-1].step}: "
                f"{type(error).__name__}: {error}"
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


def not_finite(step: AnyStep) -> str:
    """The reason of a trial whose score is NaN or infinite."""
    return f"non_finite_metric: the score is {step.score} at step {step.step}"
