"""One spread study while it runs: its core, its trials and their records.

Trials of one study run at the same time. A resumed study asks its searcher again for the trials that it had, and tells
it of their ends in the order in which they ended; a configuration that is another one now is the recorded one. So a new
core is about where the old one was, though not to the letter: see docs/reliability.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from schedulers.protocols import Scheduler
from tuning.basics.timing import HANG_TIMES, USUAL
from tuning.definition.customer_limits import Limits
from tuning.errors import StudyError, reason_of
from tuning.execution.jobs import EndedStudy
from tuning.execution.limits import hard
from tuning.execution.reports import FailureReport, StepReport, TrialLength, worker_died
from tuning.execution.spread.state import BegunTrial
from tuning.notes import EndCode, Note
from tuning.records.schema import TrialRecord
from tuning.steps import Step
from tuning.study.build import PlannedStudy
from tuning.study.core import STOP
from tuning.study.interfaces import Configuration
from tuning.study.study import family_of
from tuning.study.trial import RUNNING, Trial, TrialShape, Verdict


@dataclass(frozen=True)
class HangLimits:
    """When a trial of a spread study hangs.

    Attributes:
        limits: of time.
        patience: seconds for which a trial may report nothing, where `trial_seconds` is not set.
        grace: seconds on top of `limits`, for a worker that has to load its libraries first.
    """

    limits: Limits = field(default_factory=Limits)
    patience: float = math.inf
    grace: float = USUAL.cold_start_s

    def exceeded(self, worked: float, idle: float, of_study: float, longest: float) -> Note | None:
        """Return why a trial hangs; None where it does not.

        worked, idle: seconds since its worker took it up, and since that has reported something. of_study: for which
        its study has run. longest: that an earlier trial has taken.
        """
        limits = self.limits
        if limits.trial_seconds is not None and worked > hard(limits.trial_seconds, self.grace):
            return EndCode.TOOK_LONGER_WITHOUT_STEP("trial_seconds", limit=limits.trial_seconds)
        if limits.study_seconds is not None and of_study > hard(limits.study_seconds, self.grace):
            return EndCode.STUDY_TOOK_LONGER_WITHOUT_STEP("study_seconds", limit=limits.study_seconds)
        patience = max(self.patience, HANG_TIMES * longest)
        if limits.trial_seconds is None and idle > patience:
            return EndCode.HANG(seconds=patience)
        return None


@dataclass(slots=True, eq=False, repr=False)
class SpreadTrial(Trial):
    """A trial somewhere on the cluster.

    death: what Tune said of its worker's last end. checkpoint: the state from which it can go on, a path in the run
    directory. cohort_steps: of the longest trial of its cohort.
    """

    death: str | None = None
    checkpoint: str | None = None
    cohort_steps: int = 0

    def take_length(self, length: TrialLength) -> None:
        """Its worker says how long it is, and what its steps are."""
        self.shape, self.cohort_steps = length, length.cohort_steps

    def take_step(self, report: StepReport) -> Step:
        """Take in a step that its worker reports. NaN and infinity are scores."""
        self.steps.append(report.step)
        self.seconds, self.fit_seconds = report.seconds, report.fit_seconds
        self.step_seconds.append(report.seconds)
        self.worker = report.worker
        return report.step

    @property
    def last_step(self) -> float:
        return self.steps[-1].step if self.steps else -math.inf


class SpreadStudy:
    """Feeds one study's core with what workers report.

    hangs: when a trial hangs; by default none has a limit.

    Raises:
        StudyError: the searcher, a scheduler or a rule has raised. The study can have no more trials then (`give_up`);
            those that run end as they are.
    """

    def __init__(self, planned: PlannedStudy, hangs: HangLimits | None = None) -> None:
        self.planned, self.study = planned, planned.study
        self.hangs = hangs or HangLimits()
        self.core = planned.core(self._scheduler_for, SpreadTrial)
        self.live: dict[int, SpreadTrial] = {}
        self.waiting: list[SpreadTrial] = []  # suggested before a crash, to be handed out again
        self.records: list[TrialRecord] = []
        self.failure: Note | None = None
        self.crashed: tuple[int, str | None] | None = None  # the trial that ended its workers, what Tune said of it
        self._cohort_steps: dict[str, int] = {}  # by family, as the worker of its first trial said
        self._began, self._before = time.monotonic(), 0.0  # seconds of earlier attempts

    @property
    def closed(self) -> bool:
        """Nothing will be suggested any more."""
        spent = bool(self.core.closed_by) or self.core.suggested >= self.study.n_trials
        return (spent or self.failure is not None or self.crashed is not None) and not self.waiting

    @property
    def done(self) -> bool:
        """Nothing will be suggested and nothing runs."""
        return self.closed and not self.live

    def next(self) -> SpreadTrial | None:
        """Return the next trial to run, None when there is none now."""
        if self.waiting:
            trial = self.waiting.pop(0)
            trial.attempt += 1
            return trial
        if self.closed:
            return None
        asked = self.core.ask()
        if asked is None and not self.live and not self.core.closed_by:
            self.core.exhaust()  # no trial's end can bring the searcher to suggest something: none runs
        if asked is not None:
            self.live[asked.number] = asked
        return asked

    def result(self, number: int, report: StepReport | FailureReport) -> bool:
        """Take in what a trial reports; True when it is to stop. A step seen before changes nothing."""
        trial = self.live.get(number)
        if trial is None or trial.failed:
            return True
        if isinstance(report, FailureReport):
            if report.of_study:  # its data, for whatever configuration
                raise StudyError(report.reason)
            if not trial.in_cohort and report.length is not None:
                trial.take_length(report.length)
            trial.fail(report.reason, report.error)
            return False
        if report.step.step <= trial.last_step:
            return trial.verdict is not None
        stop = self.core.step(trial, self._take_step(trial, report)) == STOP
        self.core.ask_rules()  # all trials may have been suggested, so that nobody asks any more
        return stop

    def overdue(self, number: int, worked: float, idle: float) -> bool:
        """Return whether a trial hangs: it has failed then, and its worker is to be killed.

        worked, idle: seconds since its worker took it up, and since that has reported something.
        """
        searched = self._before + time.monotonic() - self._began
        longest = max((record.seconds for record in self.records), default=0.0)
        why = self.hangs.exceeded(worked, idle, searched, longest)
        if why and (trial := self.live.get(number)) is not None and not trial.failed:
            trial.fail(why)
        return why is not None

    def end(self, number: int, *, died: bool = False) -> TrialRecord | None:
        """Take in the end of a trial. died: it has ended with its last worker, which ends its study, too."""
        trial = self.live.pop(number, None)
        if trial is None:
            return None
        if died and not trial.failed:
            if worker_died(trial.death or ""):
                trial.fail(EndCode.WORKER_DIED(), trial.death)
                self.crashed = (number, trial.death)
            else:
                trial.fail(EndCode.WORKER_COULD_NOT_WORK(error=_last_line(trial.death)), trial.death)
        record = self._close(trial)
        self.records.append(record)
        if self.crashed is not None:
            self.live.clear()
            self.waiting.clear()
        if not self.live:
            self.core.ask_rules()  # it may have been the last trial, so that nobody asks any more
        return record

    def ended(self) -> EndedStudy:
        """Return what has come of it, once it is done."""
        number, error = self.crashed or (None, None)
        crashed = None if number is None else f"trial {number}"
        return EndedStudy(self.study, self.records, self.core.ended_by, self.failure, crashed, error)

    def give_up(self, error: Exception) -> None:
        """End the study, which cannot go on. What is recorded of it stays, and `failure` says why."""
        self.failure = reason_of(error)
        self.live.clear()
        self.waiting.clear()

    def resume(self, records: Sequence[TrialRecord], begun: Mapping[int, BegunTrial]) -> None:
        """Go on where earlier drivers were; trials without a record wait to be run, from their checkpoint or anew.

        records: of the trials that have ended. begun: the trials that have a checkpoint, by number.
        """
        known = {number: trial.config for number, trial in begun.items()}
        known |= {record.trial: record.config for record in records}
        suggested = {record.suggested: record.trial for record in records}
        ends = {record.told: record for record in records}
        for position in range(max(ends, default=-1) + 1):
            self.core.position = position
            if position in ends:
                self._recall(ends[position])
            else:  # a trial that has not ended leaves a gap
                self._suggest_up_to(suggested.get(position, self.core.suggested), known)
        self._suggest_up_to(max(known, default=-1), known)
        self.waiting = list(self.live.values())
        for trial in self.waiting:
            if trial.number in begun:
                self._take_up(trial, begun[trial.number])
        if self.crashed is not None:
            self.live.clear()
            self.waiting.clear()
        self._before = _covered((record.started, record.started + record.seconds) for record in records)
        for rule in self.core.rules:
            rule.on_replay(self._before)

    def _suggest_up_to(self, number: int, known: Mapping[int, Configuration]) -> None:
        """Ask for all trials up to a number; those of `known` have their configurations."""
        while self.core.suggested <= min(number, self.study.n_trials - 1):
            config = known.get(self.core.suggested)
            trial = self.core.suggest(None if config is None else self.study.space.complete(config))
            if trial is None:  # the searcher has nothing more, for a trial of which nothing is left
                self.core.suggested += 1
            else:
                self.live[trial.number] = trial

    def _recall(self, record: TrialRecord) -> None:
        """Take in a recorded trial and its end."""
        self._suggest_up_to(record.trial, {record.trial: record.config})
        trial = self.live.pop(record.trial)
        trial.steps = [Step(step.step, step.score) for step in record.steps]
        last = trial.steps[-1].step if trial.steps else None
        trial.shape = TrialShape(best_prefix=record.best_step != last)
        trial.verdict = Verdict(record.state, record.reason)
        self.core.recall(trial)
        self.core.complete(trial)
        self.core.outbox.clear()
        self.core.spent_seconds = max(self.core.spent_seconds, record.spent_seconds or 0.0)
        self.records.append(record)
        if record.reason is not None and record.reason.code is EndCode.WORKER_DIED:
            self.crashed = (record.trial, record.error)

    def _take_up(self, trial: SpreadTrial, begun: BegunTrial) -> None:
        """Take in the steps of a trial that goes on from a checkpoint; one that was made twice counts once."""
        trial.checkpoint = begun.path
        for report in begun.reports:
            if trial.verdict is None and report.step.step > trial.last_step:
                self.core.step_again(trial, self._take_step(trial, report))

    def _take_step(self, trial: SpreadTrial, report: StepReport) -> Step:
        if not trial.in_cohort:
            trial.take_length(report.length)
            self._enter(trial)
        return trial.take_step(report)

    def _enter(self, trial: SpreadTrial) -> None:
        """Begin a trial: only a worker knows how long trials are."""
        self._cohort_steps.setdefault(trial.family, trial.cohort_steps)
        trial.started = time.time()
        self.core.add(trial)
        trial.status = RUNNING

    def _close(self, trial: SpreadTrial) -> TrialRecord:
        if not trial.in_cohort and trial.cohort_steps:
            self._enter(trial)  # it failed before its first step; others of its cohort are not to notice
        self.core.complete(trial)
        return self.planned.record(self.core.outbox.popleft())

    def _scheduler_for(self, config: Configuration) -> Scheduler:
        return self.planned.scheduler(config, self._cohort_steps[family_of(config)])


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return for how long at least one of some (start, end) was going on."""
    total, reached = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _last_line(text: str | None) -> str:
    return next((line.strip() for line in reversed((text or "").splitlines()) if line.strip()), "")[:500]
