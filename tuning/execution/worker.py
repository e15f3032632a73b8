"""The worker: what every job of a run has at hand, opened once and closed whatever happens.

A job is a function of it: a study (`study_run.run_study`), a last fit (`study_run.conclude_study`), a trial of a spread
study (`spread.trial_worker`), the pool (`pool.train_pool`). It tells its worker what it turns to, and the worker notes
that for the case of a crash and sets the limits of time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

from tuning.basics.timing import hang_seconds
from tuning.execution.context import WorkerContext
from tuning.execution.crash_log import CONCLUDING, LOADING, STARTING, ProgressMarker
from tuning.execution.limits import MemoryLimit, TimeLimits
from tuning.records.schema import TrialRecord
from tuning.steps import Step
from tuning.study.study import Study
from tuning.user_code import ignore_warnings


class Worker:
    """A worker that notes and limits nothing, as when somebody debugs. context: the run and the customers at hand."""

    def __init__(self, context: WorkerContext) -> None:
        self.context = context

    @property
    def grace(self) -> float:
        """Seconds that a trial has on top of its limit, because libraries have to be loaded first."""
        return 0.0

    @property
    def worn_out(self) -> bool:
        """Whether earlier studies left so much behind that a new process is to go on."""
        return False

    def study(self, position: int, study: Study, known: Sequence[TrialRecord]) -> None:
        """A study begins. position: in its shard. known: its trials so far."""

    def took(self, trials: Iterable[TrialRecord]) -> None:
        """How long trials have taken; others may take several times as long."""

    def loading(self) -> None:
        """The customer's data is read and prepared."""

    def trial(self, number: int) -> None:
        """A trial's training begins."""

    def concluding(self) -> None:
        """A model is about to be fitted again: for its test score, for an ensemble, for the model that is kept."""

    def saving(self) -> None:
        """What follows is not the customer's doing: models and records are written."""

    def part(self, number: int, seconds: float) -> None:
        """A part of a job without trials begins, and may take so long. number: stands for a trial's."""

    def each_step(self, start: Callable[..., Iterable[Step]]) -> Callable[..., Iterable[Step]]:
        """Training code, watched step by step."""
        return start

    def waiting(self) -> AbstractContextManager[None]:
        """Others work, with limits of their own."""
        return nullcontext()


class WatchedWorker(Worker):
    """A worker that notes where it is; its process ends when it exceeds a limit of time.

    Attributes:
        guard: the limits of time.
        marker: where it is noted; None where somebody else knows what this process is doing.
        position: of its study in its shard.
    """

    def __init__(
        self, context: WorkerContext, guard: TimeLimits, marker: ProgressMarker | None, memory: MemoryLimit | None
    ) -> None:
        super().__init__(context)
        self.guard, self.marker, self._memory = guard, marker, memory
        self.position = STARTING

    @property
    def grace(self) -> float:
        return self.guard.grace

    @property
    def worn_out(self) -> bool:
        return self._memory is not None and self._memory.worn_out

    def study(self, position: int, study: Study, known: Sequence[TrialRecord]) -> None:
        self.position = position
        self.guard.study(hang_seconds(study.customer.about_rows, of_objective=self.context.objective is not None))
        self.guard.took(known)
        if self.marker is not None:
            self.marker.loaded(self.guard.loading)

    def took(self, trials: Iterable[TrialRecord]) -> None:
        self.guard.took(trials)

    def loading(self) -> None:
        self._at(LOADING)
        self.guard.part()

    def trial(self, number: int) -> None:
        self._at(number)
        self.guard.trial()

    def concluding(self) -> None:
        self._at(CONCLUDING)
        self.guard.final_fit()

    def saving(self) -> None:
        self.guard.pause()

    def part(self, number: int, seconds: float) -> None:
        self.position = 0
        self._at(number)
        self.guard.beside(seconds)

    def each_step(self, start: Callable[..., Iterable[Step]]) -> Callable[..., Iterable[Step]]:
        return self.guard.each_step(start)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        self.guard.pause()
        yield
        self.guard.part()

    def _at(self, trial: int) -> None:
        if self.marker is not None:
            self.marker.at(self.position, trial)


@contextmanager
def open_worker(
    context: WorkerContext,
    *,
    grace: float = 0.0,
    marker: ProgressMarker | None = None,
    slots: int = 1,
    shared: int = 0,
) -> Iterator[WatchedWorker]:
    """Open a worker of this process, with the run's limits.

    grace: seconds on top of the first study's limits, while libraries are loaded. marker: says where it is; without one
    the process has a limit of memory only where the definition has. slots, shared: as of `MemoryLimit`.
    """
    limits = context.spec.definition.limits
    with ExitStack() as stack:
        stack.enter_context(ignore_warnings())
        memory = None
        if marker is not None or limits.memory_gb is not None:
            memory = stack.enter_context(MemoryLimit(limits.memory_gb, slots, shared))
        file = stack.enter_context(tempfile.TemporaryFile()) if marker is None else marker.stack
        guard = stack.enter_context(TimeLimits(limits, file, grace))
        yield WatchedWorker(context, guard, marker, memory)
