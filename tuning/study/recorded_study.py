"""A study that trains in this process, as records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from schedulers.protocols import Scheduler
from tuning.basics.seeds import trial_seed
from tuning.notes import Note
from tuning.records.schema import TrialRecord
from tuning.steps import Step
from tuning.study.ahead import AheadLoop, AheadTrial
from tuning.study.build import PlannedStudy
from tuning.study.core import StudyCore
from tuning.study.helpers import HelperPool
from tuning.study.interfaces import Configuration
from tuning.study.local_trial import LocalTrial
from tuning.study.loop import TrialLoop, in_process
from tuning.study.study import StudyTraining


@dataclass
class RecordedStudy:
    """Runs one study's trials and gives a record for each.

    planned: the study. training: how its trials train. recorded: its records of earlier attempts, which are replayed
    into the searcher and the schedulers, not run again. on_start: called with a trial's number before its training
    starts. helpers: train the trials of a study under a scheduler that pauses them; None for this process.

    A study under a scheduler that pauses trials (PBT, HyperBand, …) gives its records when it ends: until then no trial
    has ended for good, and such a study restarts whole.
    """

    planned: PlannedStudy
    training: StudyTraining
    recorded: Sequence[TrialRecord] = ()
    on_start: Callable[[int], None] | None = None
    helpers: HelperPool | None = None
    #: Why the study has ended before its budget was used up; None where it has not.
    stopped_by: Note | None = field(default=None, init=False)

    def __iter__(self) -> Iterator[TrialRecord]:
        loop = self._loop()
        try:
            records = map(self.planned.record, loop)
            yield from list(records) if self._pauses else records
        finally:
            self.stopped_by = loop.core.ended_by
            loop.close()

    @property
    def _pauses(self) -> bool:
        return self.planned.study.scheduler.pauses

    def _loop(self) -> TrialLoop:
        """Return the trials, which this process trains, or helpers ahead of their turn."""
        planned, shape, on_start = self.planned, self.training.shape, self.on_start
        if self.helpers is not None:
            core: StudyCore[LocalTrial] = planned.core(self._scheduler_for, AheadTrial)
            exact = self.training.exact
            return AheadLoop(core, self.helpers, planned.searcher, exact, shape=shape, on_start=on_start)
        return TrialLoop(
            planned.core(self._scheduler_for, LocalTrial),
            in_process(self._start),
            pauses=self._pauses,
            shape=shape,
            replay=self.recorded,
            on_start=on_start,
        )

    def _scheduler_for(self, config: Configuration) -> Scheduler:
        training = self.training
        return self.planned.scheduler(config, training.cohort_steps(config), training.frozen(config))

    def _start(self, config: Configuration, number: int, state: object) -> Iterable[Step]:
        return self.training.start(config, trial_seed(self.planned.study.seed, number), state)
