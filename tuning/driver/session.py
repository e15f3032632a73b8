"""The work on a run that this process owns: on its hosts, with observers that write its report, logs and copy."""

from __future__ import annotations

import atexit
import contextlib
import gc
import logging
from dataclasses import replace
from functools import cache

from tuning.basics.public import is_interactive
from tuning.basics.wording import amount, time_text, value_text
from tuning.driver.display import Display
from tuning.driver.ending import LeaderboardFile, MissingLogs, ReportWriter, write_outcome
from tuning.driver.hosts.base import StopConditions
from tuning.driver.hosts.choice import hosts_of
from tuning.driver.log_capture import log_file
from tuning.driver.signals import Signals
from tuning.errors import (
    MachineError,
    PlanError,
    RunInterrupted,
    RunOwnedError,
    StorageError,
    TuningError,
    signal_name,
)
from tuning.notes import EndCode
from tuning.records.ownership import check_there
from tuning.runs.begin import OwnedRun, abandon
from tuning.runs.observer import EndState, RunEnd, RunObserver
from tuning.runs.outcome import answer, where
from tuning.runs.pool_file import check_pool
from tuning.runs.progress import Counter, earlier_rate
from tuning.runs.results import RunResult
from tuning.tracking.child import MLflowCopy

logger = logging.getLogger(__name__)


class RunSession:
    """The work on a run that this process owns. signals: what the user wants meanwhile."""

    def __init__(self, owned: OwnedRun, signals: Signals) -> None:
        self.owned, self.signals = owned, signals
        self.counter = Counter.for_plan(owned.plan, owned.recorded, owned.best, owned.failed)
        term, counted = owned.term, self.counter.counted
        self.counter.counted = replace(counted, customers=owned.customers, term=term.number, owner=term.owner)
        if term.number > 1:
            self.counter.add_ended(owned.ended)
            self.counter.earlier_rate = earlier_rate(owned.directory, owned.plan.slots)
        self.copy = MLflowCopy(owned)
        self.observers: list[RunObserver] = [
            *(observer(owned) for observer in (LeaderboardFile, ReportWriter, MissingLogs)),
            self.copy,  # of what the others have written
        ]
        self.counter.stopping = lambda: bool(signals.received)
        self.counter.on_part = self._recorded

    @property
    def result(self) -> RunResult:
        """What is recorded so far."""
        return RunResult(self.owned.directory)

    def work(self, style: str, in_process: bool) -> RunResult:
        """Work the run through, and print for whoever types what came of it. The arguments are those of `execute`."""
        _end_quickly()
        try:
            result = self.execute(style, in_process)
            if style == "line" and is_interactive() and self.owned.plan.spec.definition.compare is None:
                print("\n".join([*answer(result, result.summary()), *where(result)]))  # noqa: T201  # what a terminal shows, a cell would not
            return result
        except PlanError:  # no machine has what a worker takes
            abandon(self.owned.directory, self.owned.term)
            raise
        except RunInterrupted as stop:
            stop.result = self.result
            raise

    def execute(self, style: str, in_process: bool = False) -> RunResult:
        """Work until nothing is left, or the run is to stop. The latter is an error unless the run's time is used up.

        style: of the progress, see `tuning.driver.display`. in_process: work in this process alone.
        """
        display = Display(self.counter, style, self.owned)
        display.tell(_what_runs(self.owned), self.owned.plan.notes)
        result = self.result
        try:
            with log_file(self.owned.directory), self.owned.lease as lease:
                halt = StopConditions(lease, self.signals, self._seconds_left())
                for observer in self.observers:
                    observer.began()
                with display:
                    try:
                        self._work(halt, in_process)
                        check_there(self.owned.directory, self.owned.term)
                        state, error = self._reason(halt)
                    except BaseException as raised:
                        error = self._or_deleted(raised)
                        state = _state_after(error)
                    if halt.interrupted:
                        self._recount()
                    elif state is EndState.DONE and not self.counter.errors:
                        self.counter.settle()
                    end = self._end(state, result, error)
                    self._tell(end)
                if error is not None:
                    raise error
                return end.result
        except TuningError:
            raise
        except BaseException:
            if not self.signals.received:
                raise
            # What Ray makes of the second signal is not our exception any more.
            raise self._interrupted(self.signals.last) from None

    def _work(self, halt: StopConditions, in_process: bool) -> None:
        if not self.owned.plan.studies:
            return
        check_pool(self.owned.directory, self.owned.plan.spec.definition)  # else each worker would find it out
        for host in hosts_of(self.owned, in_process=in_process):
            if halt.wanted or not host.work(self.counter, halt):
                return
            check_there(self.owned.directory, self.owned.term)

    def _reason(self, halt: StopConditions) -> tuple[EndState, BaseException | None]:
        """Return why the hosts have stopped, and the error that says so."""
        if halt.lease.taken_by:
            return EndState.LOST, RunOwnedError(
                f"{self.owned.directory.shown} was taken over by {halt.lease.taken_by}, which believed this process "
                "dead. What was recorded until then counts; this process has stopped."
            )
        if halt.broken:
            return EndState.FAILED, MachineError(
                f"workers keep crashing before they record a result: {halt.broken}. What is recorded is "
                f"kept. Remove the cause, then: {self.owned.resume_advice()}"
            )
        if halt.interrupted:
            return EndState.STOPPED, RunInterrupted(halt.interrupted)
        return (EndState.SPENT if halt.used_up else EndState.DONE), None

    def _or_deleted(self, error: BaseException) -> BaseException:
        """Return the error, or the one that says that somebody has deleted the run, which has a hundred faces."""
        if not isinstance(error, StorageError) and isinstance(error, Exception):
            try:
                check_there(self.owned.directory, self.owned.term)
            except StorageError as deleted:
                return deleted
        return error

    def _end(self, state: EndState, result: RunResult, error: BaseException | None) -> RunEnd:
        if state is EndState.SPENT:
            budget = time_text(self.owned.plan.spec.definition.time_budget or 0.0)
            result.pending = EndCode.TIME_BUDGET_SPENT(budget=budget)
            if result.unfinished:
                logger.warning(
                    "the time budget (%s) is spent, with %s unfinished; their trials so far are kept; resume with a "
                    "larger budget, which counts from the run's beginning: %s",
                    budget,
                    amount(result.unfinished, "study"),
                    self.owned.resume_advice("time_budget"),
                )
        return RunEnd(state, result, error)

    def _tell(self, end: RunEnd) -> None:
        """Tell each observer that the run has ended, also when another one raises; then the first error is raised."""
        error: BaseException | None = None
        for observer in self.observers:
            self.counter.doing = observer.at_end
            try:
                observer.ended(end)
            except BaseException as raised:
                error = error or raised
                end = replace(end, state=_state_after(raised), error=error)
        self.counter.doing = ""
        self.counter.ended = "" if end.state is EndState.LOST else end.state.word
        write_outcome(self.owned, end, self.copy.not_copied, self.counter.lost_nodes)
        if error is not None:
            raise error

    def _recorded(self, part: str) -> None:
        for observer in self.observers:
            observer.recorded(part)

    def _seconds_left(self) -> float | None:
        limit = self.owned.plan.spec.definition.time_budget
        return None if limit is None else max(0.0, limit - self.owned.term.seconds)

    def _recount(self) -> None:
        """Let the last line say what `_interrupted` does: the last reports of workers may not have been counted, and
        those of a resume are of what was left."""
        with contextlib.suppress(TuningError):
            result = self.result
            studies = len(result.planned)
            self.counter.counted = replace(
                self.counter.counted,
                studies=studies,
                done_studies=studies - result.unfinished,
                done_trials=result.summary()["trials"],
            )

    def _interrupted(self, number: int) -> RunInterrupted:
        result = self.result
        trials, studies = result.summary()["trials"], len(result.planned)
        if not result.unfinished:
            return RunInterrupted(
                number,
                f"stopped by {signal_name(number)} when all was recorded, {amount(trials, 'trial')} of "
                f"{amount(studies, 'study')}; the report, or what else is written at the end, may be missing. Write it "
                f"with: {self.owned.resume_advice()}",
            )
        best = self.counter.now.best if studies == 1 else None
        return RunInterrupted(
            number,
            f"stopped by {signal_name(number)} with {amount(trials, 'trial')} and {studies - result.unfinished} of "
            f"{amount(studies, 'study')} recorded"
            f"{'' if best is None else f', the best score so far is {value_text(best)}'}. "
            f"Resume with: {self.owned.resume_advice()}",
        )


def _what_runs(owned: OwnedRun) -> str:
    """Return how much is to be done, and in how many slots."""
    plan = owned.plan
    alone = plan.spec.definition.objective is not None and owned.customers == len(plan.studies) == 1
    whose = "experiment" if alone else "customer"
    studies = [] if len(plan.studies) == owned.customers else [amount(len(plan.studies), "study")]
    parts = [amount(owned.customers, whose), *studies, amount(plan.n_trials, "trial"), amount(plan.slots, "slot")]
    return ", ".join(parts)


def _state_after(error: BaseException) -> EndState:
    """How a run has ended that an error has ended."""
    if isinstance(error, KeyboardInterrupt):
        return EndState.KILLED
    return EndState.LOST if isinstance(error, RunOwnedError | StorageError | PlanError) else EndState.FAILED


@cache
def _end_quickly() -> None:
    """Have Python's garbage collector leave out what is loaded when the process ends: that took most of a second."""
    atexit.register(gc.freeze)
