"""A study in this process, without a cluster and without Ray's controller.

Trials run one after another. Under a scheduler that pauses trials, suspended ones take turns. Their order follows Ray's
controller with one slot: a pending trial is kept in hand as long as there are more, and the scheduler chooses which
pending or paused trial runs next.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TypeAlias

from tuning.errors import StudyError
from tuning.notes import EndCode
from tuning.records.schema import FINISHED, STOPPED, TrialRecord
from tuning.steps import Step
from tuning.study.core import CONTINUE, STOP, StudyCore, same_config
from tuning.study.interfaces import Configuration
from tuning.study.local_trial import LocalTrial, StartTraining
from tuning.study.trial import ANY_SHAPE, PAUSED, PENDING, RUNNING, TrialShape, Verdict, first_gap

#: Trains a trial's next step; None at the end of its training.
Pull: TypeAlias = Callable[[LocalTrial], Step | None]


class ReplayError(StudyError):
    """Replaying a study's records does not give the same search again; the study has to run anew."""


def any_shape(_config: Configuration) -> TrialShape:
    """Return the shape of a trial as long as the longest one of its cohort, of which the last step counts."""
    return ANY_SHAPE


def in_process(start: StartTraining) -> Pull:
    """Train in this process: each trial is a generator that `start` makes."""
    return lambda trial: trial.pull(start)


class TrialLoop(Iterator[LocalTrial]):
    """The trials of one study, in the order in which they end.

    core: takes the study's decisions.
    pull: trains a trial's next step.
    pauses: whether the study's scheduler pauses trials. One of a family that it cannot pause may have another one.
    shape: of a configuration.
    replay: the study's first trials as recorded by an earlier attempt. They are suggested, decided and told again,
        without being run or yielded. Under a scheduler that pauses trials there are none: such a study restarts whole.
    on_start: called with a trial's number just before its training starts.

    Iterating raises `StudyError` when the searcher or a scheduler raises, and `ReplayError` when a replay takes another
    way than recorded. An exception in training only fails its trial.
    """

    def __init__(
        self,
        core: StudyCore[LocalTrial],
        pull: Pull,
        *,
        pauses: bool = False,
        shape: Callable[[Configuration], TrialShape] = any_shape,
        replay: Sequence[TrialRecord] = (),
        on_start: Callable[[int], None] | None = None,
    ) -> None:
        self.core, self._pull, self._pauses, self._shape, self._on_start = core, pull, pauses, shape, on_start
        known = {record.trial: record for record in replay}
        # What comes after a gap was suggested knowing the missing trial: it has to run again.
        self._earlier = deque(known[number] for number in range(first_gap(known)))
        self._filling = False  # a population is being suggested, all of it before its first trial starts
        self._run = self._trials()

    def __next__(self) -> LocalTrial:
        return next(self._run)

    def close(self) -> None:
        """End between two trials; suspended ones are dropped without being told to anybody."""
        self._run.close()
        for cohort in self.core.cohorts.values():
            for trial in cohort.trials:
                trial.release()

    def _trials(self) -> Generator[LocalTrial, None, None]:
        if self._pauses and self._earlier:
            raise ReplayError(EndCode.NEEDS_ALL_TRIALS())
        while (trial := self._next()) is not None:
            if self._earlier:
                self._run_again(trial, self._earlier.popleft())
                continue
            self._advance(trial)
            while self.core.outbox:
                yield self.core.outbox.popleft()
        self._end_waiting()
        while self.core.outbox:
            yield self.core.outbox.popleft()

    def _next(self) -> LocalTrial | None:
        """Return the trial that runs next, in whichever cohort; None when none can."""
        core = self.core
        while True:
            if self._filling or not any(
                trial.status == PENDING for cohort in core.cohorts.values() for trial in cohort.trials
            ):
                if (trial := self._ask()) is not None:
                    if self._enter(trial):
                        return trial
                    continue
                self._filling = False
            else:
                core.ask_rules()
            if core.stopped_by:
                return None
            for cohort in core.cohorts.values():
                if cohort.trials and (chosen := core.choose(cohort)) is not None:
                    return chosen
            return None

    def _enter(self, trial: LocalTrial) -> bool:
        """Bring a new trial into its cohort; True where it runs to its end at once, before another one is asked for."""
        cohort = self.core.cohort(trial)
        if self._pauses:
            if trial.number in self.core.protect:
                return True  # outside of its cohort
            trial.schedule = ((0, dict(trial.config)),)
            self._filling = self._filling or cohort.population
        self.core.add(trial)
        return not self._pauses

    def _ask(self) -> LocalTrial | None:
        trial = self.core.ask()
        if trial is not None:
            trial.shape = self._shape(trial.config)
        elif not self.core.closed_by:
            self.core.exhaust()  # no trial's end can bring the searcher to suggest something: none runs
        return trial

    def _begin(self, trial: LocalTrial) -> None:
        """Note that a trial's training is about to start."""
        trial.started = time.time()
        trial.status = RUNNING
        if self._on_start is not None:
            self._on_start(trial.number)

    def _advance(self, trial: LocalTrial) -> None:
        """Let a trial run until its scheduler pauses or stops it, or it ends."""
        core, cohort = self.core, self.core.cohort(trial)
        if not (trial.in_cohort and self._pauses):
            self._run_through(trial)
            return
        if trial.status == PENDING:
            self._begin(trial)
        trial.status = RUNNING
        if core.is_full(trial):
            self._end(trial)
            return
        while (step := self._pull(trial)) is not None:
            decision = core.step(trial, step)
            if decision == STOP:
                break
            if decision != CONTINUE or trial.status != RUNNING:
                trial.status = PAUSED
                if core.is_full(trial) and not cohort.population:
                    trial.release()  # nothing left to train; the scheduler still counts it
                return
        self._end(trial)

    def _run_through(self, trial: LocalTrial) -> None:
        """Run a trial to its end."""
        self._begin(trial)
        core = self.core
        while (step := self._pull(trial)) is not None:
            decision = core.step(trial, step)
            if decision == STOP:
                break
            if decision != CONTINUE:
                scheduler = type(core.cohort(trial).scheduler).__name__
                raise StudyError(EndCode.PAUSED_IN_TURN(scheduler, trial=trial.number))
        core.complete(trial)

    def _end(self, trial: LocalTrial) -> None:
        """End a trial that others may have waited for."""
        self.core.complete(trial)

    def _end_waiting(self) -> None:
        """End what is left: a rule has ended the study, or the scheduler waits for something that will not come."""
        for cohort in self.core.cohorts.values():
            for trial in list(cohort.trials):
                if trial.is_finished():
                    continue  # its scheduler has ended it when it heard of another one's end
                if not trial.steps:
                    cohort.forget(trial)
                    continue
                if self.core.is_full(trial):
                    trial.verdict = Verdict(FINISHED)
                else:
                    waiting = EndCode.PAUSED_FOR_GOOD(type(cohort.scheduler).__name__, step=trial.steps[-1].step)
                    trial.verdict = Verdict(STOPPED, self.core.stopped_by or waiting)
                self._end(trial)

    def _run_again(self, trial: LocalTrial, earlier: TrialRecord) -> None:
        """Feed a recorded trial to searcher and scheduler as if it had just run."""
        if not same_config(trial.config, earlier.config):
            config, now = str(dict(earlier.config)), str(trial.config)
            raise ReplayError(EndCode.OTHER_SUGGESTION(trial=trial.number, config=config, now=now))
        for rule in self.core.rules:
            rule.on_replay(earlier.seconds)
        trial.status = RUNNING
        for position, step in enumerate(earlier.steps, 1):
            trial.steps.append(Step(step.step, step.score))
            if self.core.step_again(trial, step) != STOP:
                continue
            if position < len(earlier.steps):
                raise ReplayError(EndCode.STOPS_EARLIER(trial=trial.number, step=step.step))
        trial.verdict = Verdict(earlier.state)
        self.core.complete(trial)
        if earlier.spent_seconds is not None:
            self.core.spent_seconds = earlier.spent_seconds
        self.core.outbox.clear()
