"""A study that trains in this process, as records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from schedulers.protocols import Scheduler
from schedulers.spec import Mode
from tuning.basics.seeds import trial_seed
from tuning.records.schema import TrialRecord
from tuning.steps import Step
from tuning.study.ahead import AheadLoop, AheadTrial
from tuning.study.build import build_scheduler, build_searcher
from tuning.study.core import StudyCore
from tuning.study.helpers import HelperPool
from tuning.study.interfaces import Configuration, Rule, Searcher
from tuning.study.local_trial import LocalTrial
from tuning.study.loop import TrialLoop, in_process
from tuning.study.record import trial_record
from tuning.study.study import SCORE, Study, StudyTraining, family_of
from tuning.study.trial import EarlierTrial
from tuning.study.warm_start import DEFAULT_ONLY, StartingPoints


@dataclass
class RecordedStudy:
    """Runs one study's trials and gives a record for each.

    run: id of the run. training: how trials train. mode: "max" or "min". recorded: this study's records of earlier
    attempts, which are replayed into the searcher and the schedulers, not run again. on_start: called with a trial's
    number before its training starts. rules: built stopping rules of the study. begin: the points to try first.
    helpers: train the trials of a study under a scheduler that pauses them; None for this process.

    A study under a scheduler that pauses trials (PBT, HyperBand, …) gives its records when it ends: until then no trial
    has ended for good, and such a study restarts whole.
    """

    run: str
    study: Study
    training: StudyTraining
    metric: str
    mode: Mode
    recorded: Sequence[TrialRecord] = ()
    on_start: Callable[[int], None] | None = None
    rules: Sequence[Rule] = ()
    begin: StartingPoints = DEFAULT_ONLY
    helpers: HelperPool | None = None
    #: The rule that has ended the study, as a sentence; empty without one.
    stopped_by: str = field(default="", init=False)

    def __iter__(self) -> Iterator[TrialRecord]:
        loop = self._loop()
        try:
            records = (trial_record(trial, self.study, self.run, self.metric, self.mode) for trial in loop)
            yield from list(records) if self.study.scheduler.pauses else records
        finally:
            self.stopped_by = loop.core.stopped_by
            loop.close()

    def _loop(self) -> TrialLoop:
        """The trials, which this process trains, or helpers ahead of their turn."""
        shape, on_start, helpers = self.training.shape, self.on_start, self.helpers
        if helpers is not None:
            exact = self.training.exact
            return AheadLoop(self._core(AheadTrial), helpers, self._searcher, exact, shape=shape, on_start=on_start)
        return TrialLoop(
            self._core(LocalTrial),
            in_process(self._start),
            pauses=self.study.scheduler.pauses,
            shape=shape,
            replay=[_earlier(record) for record in self.recorded],
            on_start=on_start,
        )

    def _core(self, trial: type[LocalTrial]) -> StudyCore[LocalTrial]:
        return StudyCore(
            self._searcher(),
            self._scheduler_for,
            trial,
            n_trials=self.study.n_trials,
            metric=SCORE,
            mode=self.mode,
            family=family_of,
            rules=self.rules,
        )

    def _searcher(self) -> Searcher:
        return build_searcher(self.study, self.mode, self.begin)

    def _scheduler_for(self, config: Configuration) -> Scheduler:
        training = self.training
        steps, frozen = training.race_steps(config), training.frozen(config)
        return build_scheduler(self.study, self.mode, config, steps, frozen)

    def _start(self, config: Configuration, number: int, state: object) -> Iterable[Step]:
        return self.training.start(config, trial_seed(self.study.seed, number), state)


def _earlier(record: TrialRecord) -> EarlierTrial:
    return EarlierTrial(record.trial, record.config, record.steps, record.state, record.seconds, record.spent_seconds)
