"""The worker: what every job of a run has at hand, opened once and closed whatever happens.

A job is a function of it: a study (`study_run.run_study`), a last fit (`study_run.conclude_study`), a trial of a spread
study (`spread.trial_worker`), the pool (`pool.train_pool`). It tells its worker what it turns to, and the worker notes
that for the case of a crash and sets the limits of time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tuning.basics.timing import hang_seconds
from tuning.definition.customer_limits import Limits
from tuning.execution.context import WorkerContext
from tuning.execution.crash_log import CONCLUDING, LOADING, STARTING, ProgressMarker
from tuning.execution.limits import MemoryLimit, TimeLimits
from tuning.records.schema import TrialRecord
from tuning.study.study import Study
from tuning.user_code import ignore_warnings


class Worker:
    """A process that does jobs of a run. `open_worker` makes one with limits.

    Attributes:
        context: the run and the customers at hand.
        guard: the limits of time; without them, as when somebody debugs, nothing is ended.
        marker: where it is noted what the process turns to; None where nobody looks.
        memory: the limit of memory; None without one.
        position: of its study in its shard.
    """

    def __init__(
        self,
        context: WorkerContext,
        guard: TimeLimits | None = None,
        marker: ProgressMarker | None = None,
        memory: MemoryLimit | None = None,
    ) -> None:
        self.context, self.marker, self.memory = context, marker, memory
        self.guard = guard or TimeLimits(Limits())
        self.position = STARTING

    def study(self, position: int, study: Study, known: Sequence[TrialRecord] = ()) -> None:
        """Begin a study. position: in its shard. known: its trials so far."""
        self.position = position
        self.guard.study(hang_seconds(study.customer.about_rows, of_objective=self.context.objective is not None))
        self.guard.took(known)
        if self.marker is not None:
            self.marker.loaded(self.guard.loading)

    def loading(self) -> None:
        """Turn to reading and preparing the customer's data."""
        self._at(LOADING)
        self.guard.part()

    def trial(self, number: int) -> None:
        """Turn to the training of a trial."""
        self._at(number)
        self.guard.trial()

    def concluding(self) -> None:
        """Turn to fitting a model again: for its test score, for an ensemble, for the model that is kept."""
        self._at(CONCLUDING)
        self.guard.final_fit()

    def part(self, number: int, seconds: float) -> None:
        """Turn to a part of a job without trials, which may take so long. number: stands for a trial's."""
        self.position = 0
        self._at(number)
        self.guard.beside(seconds)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait for others, who have limits of their own."""
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
) -> Iterator[Worker]:
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
        yield Worker(context, guard, marker, memory)
