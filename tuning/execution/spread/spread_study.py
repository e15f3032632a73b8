"""One spread study while it runs: its core, its trials, and the journal of what happened.

Trials of one study run at the same time, so the order of events is part of the truth: a searcher's suggestion
depends on what it was told before, a scheduler's decision on what other trials had reported. Every event is
numbered; replaying them in order puts a new core where the old one was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from schedulers.protocols import Scheduler
from tuning.errors import StudyError, reason_of
from tuning.execution.limits import HangLimits
from tuning.execution.lost_nodes import worker_died
from tuning.execution.reports import FailureReport, StepReport, TrialLength
from tuning.execution.spread.events import (
    NO_TRIAL,
    CheckpointSaved,
    Event,
    Occurrence,
    StepTaken,
    StudyStopped,
    TrialEnded,
    TrialSuggested,
)
from tuning.execution.spread.spread_trial import SpreadTrial
from tuning.notes import EndCode, Note
from tuning.records.schema import FAILED, TrialRecord
from tuning.steps import Step
from tuning.study.build import PlannedStudy
from tuning.study.core import STOP, same_config
from tuning.study.interfaces import Configuration
from tuning.study.study import family_of
from tuning.study.trial import RUNNING, Verdict

DEATHS = "a crash, a time limit or too much memory"
BROKEN = EndCode.JOURNAL_BROKEN()
LOST = (EndCode.LOST_RECORD(), None)


class SpreadStudy:
    """Feeds one study's core with what workers report; `journal` is told of every call that changes anything.

    hangs: when a trial hangs; by default none has a limit.

    Raises:
        StudyError: the searcher, a scheduler or a rule has raised. The study can have no more trials then (`give_up`);
            those that run end as they are.
    """

    def __init__(
        self, planned: PlannedStudy, journal: Callable[[Event], None], hangs: HangLimits | None = None
    ) -> None:
        self.planned, self.study, self.journal = planned, planned.study, journal
        self.hangs = hangs or HangLimits()
        self.core = planned.core(self._scheduler_for, SpreadTrial)
        self.live: dict[int, SpreadTrial] = {}
        self.waiting: list[SpreadTrial] = []  # suggested before a crash, to be handed out again
        self.records: list[TrialRecord] = []
        self.remade: list[TrialRecord] = []  # of those, the ones that `replay` had to make again; to be written
        self.failure: Note | None = None
        self.crashed: tuple[int, str | None] | None = None  # the trial that ended its workers, what Tune said of it
        self._race_steps: dict[str, int] = {}  # by family, as the worker of its first trial said
        self._order = 0  # of the next event
        self._stop_noted = False
        self._began, self._before = time.monotonic(), 0.0  # seconds of earlier attempts

    @property
    def stopped_by(self) -> Note | None:
        """What has ended the study before its budget was used up."""
        return self.core.ended_by

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
        """The next trial to run, None when there is none now."""
        if self.waiting:
            trial = self.waiting.pop(0)
            trial.attempt += 1
            return trial
        if self.closed:
            return None
        asked = self.core.ask()
        self._note_stop()
        if asked is None and not self.live and not self.core.closed_by:
            self.core.exhaust()  # nothing runs whose end could bring the searcher to suggest something
        if asked is not None:
            self.live[asked.number] = asked
            self._note(asked.number, TrialSuggested(dict(asked.config), asked.suggest_seconds))
        return asked

    def result(self, number: int, report: StepReport | FailureReport) -> bool:
        """Take in what a trial reports; True when it is to stop. A step seen before changes nothing."""
        trial = self.live.get(number)
        if trial is None or trial.failed:
            return True
        if isinstance(report, FailureReport):
            if report.of_study:  # its data, for whatever configuration
                raise StudyError(report.reason)
            if not trial.racing and report.length is not None:
                trial.take_length(report.length)
            trial.fail(report.reason, report.error)
            return False
        if report.step.step <= trial.last_step:
            return trial.verdict is not None
        stop = self.core.step(trial, self._take_step(trial, report)) == STOP
        ruled = None if trial.verdict is None else (trial.verdict.state, trial.verdict.reason)
        self._ask_rules()  # all trials may have been suggested, so that nobody asks any more
        self._note(number, StepTaken(report, stop, ruled))
        return stop

    def overdue(self, number: int, worked: float, idle: float) -> bool:
        """Whether a trial hangs: it has failed then, and its worker is to be killed.

        worked, idle: seconds since its worker took it up, and since that has reported something.
        """
        searched = self._before + time.monotonic() - self._began
        longest = max((record.seconds for record in self.records), default=0.0)
        why = self.hangs.exceeded(worked, idle, searched, longest)
        if why and (trial := self.live.get(number)) is not None and not trial.failed:
            trial.fail(why)
        return why is not None

    def saved(self, number: int, path: str) -> None:
        """A trial has a checkpoint from which it can go on."""
        if number in self.live:
            self.live[number].checkpoint = path
            self._note(number, CheckpointSaved(path))

    def end(self, number: int, lost: Note | None = None) -> TrialRecord | None:
        """A trial has ended, by itself, stopped, or (`lost`) with its last worker: its study has ended then, too."""
        trial = self.live.pop(number, None)
        if trial is None:
            return None
        if lost is not None and not trial.failed:
            if worker_died(trial.death or ""):
                trial.fail(lost, trial.death)
                self.crashed = (number, trial.death)
            else:
                trial.fail(EndCode.WORKER_COULD_NOT_WORK(error=_last_line(trial.death)), trial.death)
        length = _length_without_step(trial)
        record = self._close(trial)
        failure = (record.reason, record.error) if record.state == FAILED and record.reason is not None else None
        self._note(number, TrialEnded(record.state, failure, self.crashed, length))
        self.records.append(record)
        if self.crashed is not None:
            self.live.clear()
            self.waiting.clear()
        if not self.live:
            self._ask_rules()  # it may have been the last trial, so that nobody asks any more
        return record

    def give_up(self, error: Exception) -> None:
        """The study cannot go on. What is recorded of it stays, and `failure` says why."""
        self.failure = reason_of(error)
        self.live.clear()
        self.waiting.clear()

    def replay(self, events: Sequence[Event], records: Mapping[int, TrialRecord]) -> None:
        """Do again what a journal says happened; trials without an end wait to be run again.

        records: of the ended trials, by number; with one that the journal does not know the study is over. One that is
        missing (its part was not written, or is damaged or deleted) is made again from the journal: running it again
        would come too late for what was suggested since.
        """
        for event in sorted(events, key=lambda event: event.order):
            self._replay_event(event, records)
            self._order = event.order + 1
            self._before = self._before if event.at is None else event.at
        for rule in self.core.rules:
            rule.on_replay(self._before)
        known = {record.trial for record in self.records}
        beyond = [record for number, record in sorted(records.items()) if number not in known]
        if beyond:
            # The journal is written before the records: a part of it is gone. Its trials may not run again.
            self.records += beyond
            self.live.clear()
            self.core.stopped_by, self._stop_noted = BROKEN, True
        self.core.position = max([self.core.position, *(record.told + 1 for record in self.records)])
        self.waiting = list(self.live.values())

    def _replay_event(self, event: Event, records: Mapping[int, TrialRecord]) -> None:
        match event.what:
            case TrialSuggested(config):
                found = self.core.suggest()
                if found is None or not same_config(found.config, config):
                    now = None if found is None else dict(found.config)
                    raise StudyError(
                        EndCode.OTHER_SUGGESTION(trial=event.trial, config=str(dict(config)), now=str(now))
                    )
                self.live[found.number] = found
            case StepTaken(report, _, ruled):
                trial = self.live[event.trial]
                decision = self.core.step_again(trial, self._take_step(trial, report))
                if decision != STOP and ruled:
                    trial.verdict = Verdict(*ruled)
            case CheckpointSaved(path):
                self.live[event.trial].checkpoint = path
            case TrialEnded():
                self._end_again(event.trial, event.what, records.get(event.trial))
            case StudyStopped(reason):
                self.core.stopped_by, self._stop_noted = reason, True

    def _end_again(self, number: int, end: TrialEnded, record: TrialRecord | None) -> None:
        """record: of the trial, None where it is missing."""
        trial = self.live.pop(number)
        if end.length is not None:
            trial.take_length(end.length)
        if record is not None and record.state == FAILED and record.reason is not None:
            trial.fail(record.reason, record.error)
        elif end.state == FAILED:
            trial.fail(*(end.failure or LOST))
        made = self._close(trial)
        self.records.append(record or made)
        if record is None:
            self.remade.append(made)
        else:
            self.core.spent_seconds = max(self.core.spent_seconds, record.spent_seconds or 0.0)
        if end.crash is not None:
            self.crashed = end.crash
            self.live.clear()

    def _take_step(self, trial: SpreadTrial, report: StepReport) -> Step:
        if not trial.racing:
            trial.take_length(report.length)
            self._enter(trial)
        return trial.take_step(report)

    def _enter(self, trial: SpreadTrial) -> None:
        """Training has begun: only a worker knows how long trials are."""
        self._race_steps.setdefault(trial.family, trial.race_steps)
        trial.started = time.time()
        self.core.enter(trial)
        trial.status = RUNNING

    def _close(self, trial: SpreadTrial) -> TrialRecord:
        if not trial.racing and trial.race_steps:
            self._enter(trial)  # it failed before its first step; others of its race are not to notice
        self.core.end(trial)
        return self.planned.record(self.core.outbox.popleft())

    def _ask_rules(self) -> None:
        self.core.ask_rules()
        self._note_stop()

    def _note_stop(self) -> None:
        """Write down that a rule has ended the study: when it is asked again, the clock may say something else."""
        if self.core.stopped_by and not self._stop_noted:
            self._stop_noted = True
            self._note(NO_TRIAL, StudyStopped(self.core.stopped_by))

    def _scheduler_for(self, config: Configuration) -> Scheduler:
        return self.planned.scheduler(config, self._race_steps[family_of(config)])

    def _note(self, number: int, what: Occurrence) -> None:
        at = self._before + time.monotonic() - self._began
        self.journal(Event(self.study.id, self._order, number, what, at))
        self._order += 1


def _length_without_step(trial: SpreadTrial) -> TrialLength | None:
    """What a replay has to know of a trial that has no step."""
    if trial.racing or not trial.race_steps:
        return None
    shape = trial.shape
    return TrialLength(shape.full_steps, shape.best_prefix, shape.progress, trial.race_steps)


def _last_line(text: str | None) -> str:
    return next((line.strip() for line in reversed((text or "").splitlines()) if line.strip()), "")[:500]
