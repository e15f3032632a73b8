"""A run that has begun is worked through: in forks, on Ray or in this process, whatever happens on the way."""

from __future__ import annotations

import atexit
import contextlib
import gc
import logging
import threading
import time
from functools import cache

from tuning.definition.options import Resources, trials_recorded
from tuning.driver.chatter import log_file, stdout_logged
from tuning.driver.cluster import restart_ray, start_ray
from tuning.driver.display import Display
from tuning.driver.forked import work_forked
from tuning.driver.halt import StopConditions, stopper, workers_callback
from tuning.driver.progress import Counter, hand_on, reports_callback
from tuning.driver.ready_workers import ready_workers, start_workers
from tuning.driver.room import make_room
from tuning.driver.signals import Signals
from tuning.driver.tuner import build_tuner, in_memory, run_queue
from tuning.errors import PlanError, RunError, RunInterrupted, RunOwnedError, StorageError, TuningError, signal_name
from tuning.execution.adapters import spread_callbacks
from tuning.execution.callback_keys import registered
from tuning.execution.lost_nodes import NodeWatch, any_alive
from tuning.execution.packed import work_shard
from tuning.execution.room import Room, machines_now
from tuning.execution.spread.running import SpreadRun
from tuning.records.parts import accepted
from tuning.records.reports import Listener, WorkerReport
from tuning.runs.begin import OwnedRun, abandon
from tuning.runs.outcome import report_line, sentences, typing
from tuning.runs.plan_file import count_studies
from tuning.runs.results import USED_UP, RunResult
from tuning.runs.trial_logs import TrialLogs
from tuning.tracking.copy.live import LiveCopy
from tuning.tracking.selection import settled_models
from tuning.tracking.settings import settings_for, tracking_uri_of
from tuning.tracking.summary.overview import overview
from tuning.tracking.summary.summary import LEADERBOARD, save_summary
from tuning.wording import figure, one_line, resume_advice

logger = logging.getLogger(__name__)

FRUITLESS_ATTEMPTS = 3
WORKER_DEATHS = 8  # of a shard in a row, without anything recorded, beyond those that put a study aside


class RunSession:
    """A run that has begun, and is worked through here."""

    def __init__(self, owned: OwnedRun, signals: Signals) -> None:
        self.signals = signals
        self.owned = owned
        self.directory = owned.directory
        self.definition = owned.plan.spec.definition
        self.plan = owned.plan
        self.timing = owned.timing
        self._closing_seconds = self.timing.mlflow_closing_s
        self.counter = Counter.of(owned.plan, owned.recorded, owned.best)
        self.counter.stopping = lambda: bool(signals.received)
        self._report_loading = threading.Thread(target=self._load_report, name="report", daemon=True)
        if self.definition.compare is None and self.definition.report:
            self.counter.on_first = self._report_loading.start
        self._own_ray = False
        self._without: frozenset[Resources] = frozenset()
        self._room = room_of(owned)

    @property
    def result(self) -> RunResult:
        """What is recorded so far."""
        return RunResult(self.directory)

    def work(self, style: str, in_process: bool) -> RunResult:
        """Work the run through, and say to whoever types what came of it. style, in_process: as of `execute`."""
        _end_quickly()
        try:
            result = self.execute(style, in_process)
            if style == "line" and typing() and self.definition.compare is None:
                print("\n".join([*sentences(result, result.summary()), *report_line(result)]))  # noqa: T201  # what a terminal shows, a cell would not
            return result
        except PlanError:  # no machine has what a worker takes
            abandon(self.directory, self.owned.term)
            raise
        except RunInterrupted as stop:
            stop.result = self.result
            raise

    def execute(self, style: str, in_process: bool = False) -> RunResult:
        """Work until nothing is left; or until somebody wants it to stop, which is an error of its own.

        style: of the progress, as of `tuning.driver.display`.
        """
        counter = self.counter
        display = Display(counter, style)
        display.tell(self.plan.notes)
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(log_file(self.directory))
                lease = stack.enter_context(self.owned.lease)
                tracking = self._start_tracking(stack)
                patience = WORKER_DEATHS + self.definition.limits.crashes_before_quarantine
                halt = StopConditions(lease, self.signals, self._seconds_left(), patience)
                started = time.time()
                try:
                    with display:
                        self._work(halt, counter, in_process)
                    result = self._end(halt)
                except (RunInterrupted, RunError) as ended:
                    if tracking and not isinstance(ended, RunOwnedError | StorageError):
                        self._sum_up(started, failed=isinstance(ended, RunError))
                    raise
                if tracking:
                    self._sum_up(started, result)
                return result
        except TuningError:
            raise
        except BaseException:
            if not self.signals.received:
                raise
            # What Ray makes of the second signal is not our exception any more.
            raise self._interrupted(self.signals.last) from None

    def _work(self, halt: StopConditions, counter: Counter, in_process: bool) -> None:
        try:
            if in_process:
                self._work_here(halt, counter)
            elif self.plan.studies and not halt.wanted and not work_forked(self.owned, halt, counter, self._start_ray):
                self._start_ray(counter)
                self._without = make_room(self.owned, counter)
                halt.signals.order = halt.end_workers
                counter.doing = "starting workers"
                self._fit_until_done(halt, counter)
                if typing():
                    start_workers(self.plan.slots)  # for the next cell
        except KeyboardInterrupt:
            self._closing_seconds = 0.0
            halt.end_workers()
            raise

    def _start_ray(self, counter: Counter) -> None:
        counter.doing = "starting Ray"
        try:
            self._own_ray |= start_ray(self.plan)
        except RunError as error:
            raise RunError(f"{error} Then: {self._advice()}") from error

    def _end(self, halt: StopConditions) -> RunResult:
        """What came of it; an error when it ended before its time for somebody else's reason."""
        if halt.lease.taken_by:
            raise RunOwnedError(
                f"{self.directory.shown} was taken over by {halt.lease.taken_by}, which believed this process dead. "
                "What was recorded until then counts; this process has stopped."
            )
        if halt.broken:
            raise RunError(
                f"workers keep crashing before they record a result: {halt.broken}. What is recorded is "
                f"kept. Remove the cause, then: {self._advice()}"
            )
        result = RunResult(self.directory)
        if halt.used_up:
            result.pending = USED_UP.format(limit=self.definition.limits.run_seconds)
        if self.definition.compare is None:
            self.directory.write_pieces(LEADERBOARD, result.board().csv)
            if self.definition.report and not halt.interrupted:
                self._report(result)
        if not halt.interrupted:
            self._complete_logs()
        if halt.interrupted:
            self._closing_seconds = self.timing.mlflow_interrupted_s
            raise RunInterrupted(halt.interrupted)
        if halt.used_up and result.unfinished:
            logger.warning(
                "the time budget (limits.run_seconds: %g) is spent with %d studies unfinished; resume with a larger "
                "one: %s",
                self.definition.limits.run_seconds,
                result.unfinished,
                self._advice("limits.run_seconds"),
            )
        return result

    def _complete_logs(self) -> None:
        """Those of trials whose workers died before they had written them, or that were recorded without loggers."""
        try:
            parts = accepted(self.directory, self.owned.term)
            TrialLogs(self.directory, self.definition.loggers).complete(parts)
        except Exception as error:  # the run itself is whole without them
            logger.warning("logs of trials are missing: %s; a resume writes them", one_line(error))

    def _load_report(self) -> None:
        """While the workers go on: not before their first trial, and not in a process that is forked."""
        with contextlib.suppress(Exception):  # who writes the report meets it, too
            from tuning.runs.report.page import load_ahead

            load_ahead(len(self.plan.studies))

    def _report(self, result: RunResult) -> None:
        from tuning.runs.report.page import write_report

        if self._report_loading.ident is not None:
            self._report_loading.join()
        try:
            write_report(result)
        except Exception as error:  # the run itself is whole without it
            logger.warning("the run's report could not be written: %s", one_line(error))

    def _advice(self, change: str = "") -> str:
        """How to resume this run; only its own program has a function that is tuned."""
        return resume_advice(self.directory.shown, change=change, by_runner=callable(self.definition.objective))

    def _seconds_left(self) -> float | None:
        limit = self.definition.limits.run_seconds
        return None if limit is None else max(0.0, limit - self.owned.term.seconds)

    def _interrupted(self, number: int) -> RunInterrupted:
        counter = self.counter
        best = counter.now.best if len(self.plan.studies) == 1 else None
        return RunInterrupted(
            number,
            f"stopped by {signal_name(number)}; {counter.done_trials} of {counter.n_trials} trials and "
            f"{counter.done_studies} of {len(self.plan.studies)} studies are recorded"
            f"{'' if best is None else f', the best score so far is {figure(best)}'}. Resume with: {self._advice()}",
        )

    def _work_here(self, halt: StopConditions, counter: Counter) -> None:
        def report(result: WorkerReport) -> None:
            counter(result)
            if halt.wanted:
                raise _EnoughError

        timing = self.timing.of_run(0, len(self.plan.studies))  # no other slot writes beside this one
        with contextlib.suppress(_EnoughError):
            for shard in range(len(self.plan.shards)):
                where = (self.directory, self.owned.term, shard)
                work_shard(*where, report, spec=in_memory(self.plan.spec), timing=timing)

    def _fit_until_done(self, halt: StopConditions, counter: Counter) -> None:
        """Tuners until nothing is left; one that raises is followed by another one while there is progress."""
        fruitless, attempt, failure = 0, 0, ""
        left = len(self.plan.studies)
        while left and fruitless < FRUITLESS_ATTEMPTS and not halt.wanted:
            before, attempt = self._recorded(), attempt + 1
            try:
                with stdout_logged(), ready_workers():  # Tune announces itself there whatever its verbosity
                    self._fit(attempt, halt, counter)
            except StorageError:
                raise
            except Exception as error:
                # One trial ended by Ray's memory monitor, or any exception in a callback, ends a whole Tuner.
                failure = one_line(error)
                logger.warning("Tune ended with %s; continuing from the records", failure)
            halt.end_workers()
            if halt.wanted:
                return
            left = RunResult(self.directory).unfinished
            fruitless = 0 if self._recorded() > before else fruitless + 1
            if left and not any_alive():
                halt.machines = NodeWatch()
                if self._own_ray:
                    restart_ray(self.plan)
            if left and fruitless and fruitless < FRUITLESS_ATTEMPTS:
                time.sleep(self.timing.attempt_pause_s)
        if left and not halt.wanted:
            reasons = "; ".join(dict.fromkeys([*counter.errors, failure])).strip("; ") or "no reason was reported"
            raise RunError(
                f"{left} of {len(self.plan.studies)} studies could not be finished in {FRUITLESS_ATTEMPTS} attempts "
                f"without progress: {reasons}. Everything recorded is kept. Resume with: {self._advice()}"
            )

    def _fit(self, attempt: int, halt: StopConditions, listener: Listener) -> None:
        from tuning.execution.tune_callbacks import handed_over

        # One room for all Tuners: what the one before has waited for in vain, the next does not wait for again.
        spread = spread_run(self.owned, lambda result: hand_on(listener, result), self._room)
        with registered(listener) as heard, registered(halt) as asked, spread.opened() as studies:
            stop = stopper(asked)
            with registered(run_queue(self.owned, spread, studies, self._without)) as queue:
                callbacks = [*spread_callbacks(queue, stop.stop_all), reports_callback(heard), workers_callback(asked)]
                with handed_over(callbacks):
                    build_tuner(self.owned, queue, attempt, stop).fit()

    def _recorded(self) -> int:
        """How many parts this owner's workers have written."""
        return len(list(self.directory.list(self.owned.term.records)))

    @property
    def _saves_models(self) -> bool:
        return self.definition.objective is None and self.definition.save_models

    def _start_tracking(self, stack: contextlib.ExitStack) -> bool:
        """Start the copy in MLflow, which is closed with the stack; False when it is switched off."""
        options = self.definition.mlflow
        if not options.enabled:
            return False
        studies = count_studies(self.directory, self.owned.term)
        settings = settings_for(
            self.directory,
            tracking_uri_of(self.directory, options.tracking_uri),
            options.experiment or self.definition.name,
            self.owned.run,
            trials_recorded(options.record_trials, studies),
            settled_models(options.record_models, studies) if self._saves_models else "none",
        )
        copy = LiveCopy(settings, self.owned.term, self.timing.mlflow_patience_s)
        copy.start()
        stack.callback(self._close_tracking, copy)
        return True

    def _sum_up(self, started: float, result: RunResult | None = None, *, failed: bool = False) -> None:
        """Write what MLflow shows of the run as a whole into the run directory, where the copy finds it."""
        try:
            result = result or RunResult(self.directory)
            shown = overview(result, self.plan.to_dict(), started, time.time(), failed=failed)
            save_summary(self.directory, *shown)
        except (StorageError, OSError, ValueError, TypeError) as error:  # the run itself is whole without it
            logger.warning("the run's summary for MLflow could not be written: %s", error)

    def _close_tracking(self, copy: LiveCopy) -> None:
        status = copy.close(self._closing_seconds)
        if status.note:
            logger.warning("%s", status.note)
        if status.missing:
            logger.warning(
                "the copy in MLflow is incomplete: %s are missing (%s); complete it with: tuning mlflow sync %s",
                status.missing,
                status.error or "no error was reported",
                self.directory.shown,
            )


def room_of(owned: OwnedRun) -> Room:
    """The room on the machines that a run has; it waits for another one as long as its timing says."""
    return Room(machines_now(), owned.timing.room_s)


def spread_run(owned: OwnedRun, report: Listener, room: Room) -> SpreadRun:
    """The spread studies of a run; report: told of every part that is written, and of errors."""
    carried = in_memory(owned.plan.spec)
    return SpreadRun(owned.directory, owned.term, owned.plan, owned.run, carried, report, owned.timing, room)


class _EnoughError(Exception):
    """The run wants to stop; leaves a worker in this process."""


@cache
def _end_quickly() -> None:
    """Have Python's garbage collector leave out what is loaded when the process ends: that took most of a second."""
    atexit.register(gc.freeze)
