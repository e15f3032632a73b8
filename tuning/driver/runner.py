"""`TuneRunner`: from a definition to a `tune.Tuner`, and through it to results, whatever happens on the way."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tuning.definition.definition import Definition
from tuning.definition.given import changed, definition_of, said, signature
from tuning.definition.options import Resources, trials_recorded
from tuning.definition.yaml_file import read_definition
from tuning.driver.cluster import restart_ray, start_ray, start_workers
from tuning.driver.forked import work_forked
from tuning.driver.halt import StopConditions, stopper, workers_callback
from tuning.driver.progress import Listener, Progress, Report, hand_on, reports_callback
from tuning.driver.room import make_room
from tuning.driver.signals import Signals
from tuning.driver.tuner import build_tuner, in_memory, tune_settings
from tuning.errors import PlanError, RunError, RunInterrupted, RunOwnedError, StorageError, TuningError, signal_name
from tuning.execution.callback_keys import registered
from tuning.execution.lost_nodes import NodeWatch, any_alive
from tuning.execution.packed import work_shard
from tuning.execution.spread.running import SpreadRun
from tuning.planning.plan import PACKED, Plan, make_plan
from tuning.records.ownership import newest_term
from tuning.runs.begin import OwnedRun, abandon, begin, resume_run
from tuning.runs.outcome import sentences, typing
from tuning.runs.plan_file import count_studies, frozen_definition
from tuning.runs.results import USED_UP, RunResult
from tuning.storage.run_directory import RunDirectory
from tuning.timing import USUAL
from tuning.tracking.copy.live import LiveCopy
from tuning.tracking.selection import settled_models
from tuning.tracking.settings import settings_for, tracking_uri_of
from tuning.tracking.summary.overview import overview
from tuning.tracking.summary.summary import LEADERBOARD, save_summary
from tuning.wording import one_line, resume_advice

logger = logging.getLogger(__name__)

FRUITLESS_ATTEMPTS = 3
WORKER_DEATHS = 8  # of a shard in a row, without anything recorded, beyond those that put a study aside


class TuneRunner:
    """Searches the best model for every customer of a definition.

    >>> runner = TuneRunner(data="customers/*.csv", target="churned", trials=40)   # doctest: +SKIP
    >>> runner.plan()      # what would run, and where
    >>> result = runner.run()
    >>> result.leaderboard()

    definition: a `Definition`, or a mapping of its keys. fields: the keys one by one, the same as in a YAML file; they
    replace those of the definition.
    """

    __signature__ = signature()

    def __init__(self, definition: Definition | Mapping[str, object] | None = None, **fields: Any) -> None:
        self.definition = definition_of(definition, fields)
        self.timing = USUAL

    def __repr__(self) -> str:
        return f"TuneRunner({said(self.definition)})"

    @classmethod
    def from_yaml(cls, path: str | Path, **overrides: Any) -> TuneRunner:
        """A runner for a YAML definition; `overrides` replace its keys."""
        return cls(read_definition(path, overrides))

    def plan(self) -> Plan:
        """What would run; imports neither Ray nor MLflow."""
        return make_plan(self.definition, timing=self.timing)

    def tuner(self, run_dir: str | Path | None = None) -> Any:
        """The `tune.Tuner` that the definition maps to, over a new run directory: of shards when it is packed, of
        trials when it is spread.

        Its `fit()` records everything there; `RunResult(run_dir)` reads it. `run()` adds the progress line, MLflow,
        and going on after a crash of Tune itself.
        """
        owned = begin(self.definition, run_dir, self.timing)
        owned.lease.release()  # nobody here watches over what the caller does with it
        start_ray(owned.plan)
        try:
            without = make_room(owned, lambda _: None)
        except PlanError:
            abandon(owned.directory, owned.term)
            raise
        if owned.plan.placement == PACKED:
            return build_tuner(owned, 0, without=without)
        return _spread(owned, lambda _: None).lasting_tuner()

    def run(
        self,
        run_dir: str | Path | None = None,
        *,
        progress: bool = True,
        in_process: bool = False,
        resume: bool = False,
    ) -> RunResult:
        """Search until every study has ended.

        run_dir: of the run; default `<storage>/<name>-<time>`. resume: go on with the run in `run_dir` when there is
        one; this definition may add trials or customers to it. in_process: without Ray, one study after the other in
        this process, so that a debugger stops in your own code. Ctrl-C raises `RunInterrupted`, whose `result` is what
        is recorded; in a notebook it prints how to resume, and the unfinished result is returned.
        """
        if resume and run_dir is None:
            raise RunError("resume needs run_dir, the folder of the run to resume.")

        def start() -> OwnedRun:
            if resume and run_dir is not None:
                return resume_run(
                    RunDirectory(run_dir, self.timing), self.definition, self.timing, in_process=in_process
                )
            return begin(self.definition, run_dir, self.timing, in_process=in_process)

        return _run(start, run_dir, progress, in_process)

    @staticmethod
    def resume(run_dir: str | Path, *, progress: bool = True, in_process: bool = False, **changes: Any) -> RunResult:
        """Go on with a run from its records: finished studies are skipped, unfinished ones replayed.

        in_process: as in `run`. changes: fields of the definition that a resume may change, such as `trials=80`.
        """
        directory = RunDirectory(run_dir)
        definition = changed(frozen_definition(directory), changes) if changes else None
        return _run(lambda: resume_run(directory, definition, in_process=in_process), run_dir, progress, in_process)


def _run(start: Callable[[], OwnedRun], run_dir: str | Path | None, progress: bool, in_process: bool) -> RunResult:
    """Begin a run and work it through; signals are heard from its first moment to its last."""
    with Signals(at_once=True) as signals:
        try:
            owned = start()
        except BaseException:
            if not signals.received:
                raise
            # A module of C that was just being loaded makes an ImportError of it.
            raise RunInterrupted(signals.last, _too_early(signals.last, run_dir)) from None
        signals.at_once = False
        try:
            result = RunSession(owned, signals).execute(progress, in_process)
            if progress and typing() and owned.plan.spec.definition.compare is None:
                print("\n".join(sentences(result, result.summary())))  # noqa: T201  # what a terminal shows, a cell would not
            return result
        except PlanError:  # no machine has what a worker takes
            abandon(owned.directory, owned.term)
            raise
        except RunInterrupted as stop:
            result = stop.result = RunResult(owned.directory)
            if not typing():
                raise
            print(stop, file=sys.stderr)  # noqa: T201  # nobody else would say so in a notebook
            return result


def _too_early(number: int, run_dir: str | Path | None) -> str:
    """What to say when a signal came before anything was tried."""
    text = f"stopped by {signal_name(number)} before the first trial"
    with contextlib.suppress(Exception):
        if run_dir is not None and newest_term(directory := RunDirectory(run_dir)) is not None:
            return f"{text}. Resume with: {resume_advice(directory.shown)}"
    return f"{text}. Nothing was recorded; start the run again."


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
        self._own_ray = False
        self._without: frozenset[Resources] = frozenset()

    def execute(self, progress: bool, in_process: bool = False) -> RunResult:
        """Work until nothing is left; or until somebody wants it to stop, which is an error of its own."""
        recorded = self.owned.recorded
        bar = Progress(self.plan.n_trials, len(self.plan.studies), shown=progress, done_trials=recorded)
        bar.tell(f"note: {note}" for note in self.plan.notes)
        try:
            with contextlib.ExitStack() as stack:
                lease = stack.enter_context(self.owned.lease)
                tracking = self._start_tracking(stack)
                patience = WORKER_DEATHS + self.definition.limits.crashes_before_quarantine
                halt = StopConditions(lease, self.signals, self._seconds_left(), patience)
                started = time.time()
                try:
                    self._work(halt, stack.enter_context(bar), in_process)
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
            raise self._interrupted(self.signals.last, bar) from None

    def _work(self, halt: StopConditions, bar: Progress, in_process: bool) -> None:
        try:
            if in_process:
                self._work_here(halt, bar)
            elif self.plan.studies and not halt.wanted and not work_forked(self.owned, halt, bar, self._start_ray):
                self._start_ray(bar)
                self._without = make_room(self.owned, bar)
                halt.signals.order = halt.end_workers
                bar.says("starting workers")
                self._fit_until_done(halt, bar)
                if typing():
                    start_workers(self.owned)  # for the next cell
        except KeyboardInterrupt:
            self._closing_seconds = 0.0
            halt.end_workers()
            raise

    def _start_ray(self, bar: Progress) -> None:
        bar.says("starting Ray")
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

    def _advice(self, change: str = "") -> str:
        """How to resume this run; only its own program has a function that is tuned."""
        return resume_advice(self.directory.shown, change=change, by_runner=callable(self.definition.objective))

    def _seconds_left(self) -> float | None:
        limit = self.definition.limits.run_seconds
        return None if limit is None else max(0.0, limit - self.owned.term.seconds)

    def _interrupted(self, number: int, bar: Progress) -> RunInterrupted:
        return RunInterrupted(
            number,
            f"stopped by {signal_name(number)}; {bar.done_trials} of {bar.n_trials} trials and "
            f"{bar.done_studies} of {len(self.plan.studies)} studies are recorded. "
            f"Resume with: {self._advice()}",
        )

    def _work_here(self, halt: StopConditions, bar: Progress) -> None:
        def report(result: Report) -> None:
            bar(result)
            if halt.wanted:
                raise _EnoughError

        timing = self.timing.of_run(0, len(self.plan.studies))  # no other slot writes beside this one
        with contextlib.suppress(_EnoughError):
            for shard in range(len(self.plan.shards)):
                where = (self.directory, self.owned.term, shard)
                work_shard(*where, report, spec=in_memory(self.plan.spec), timing=timing)

    def _fit_until_done(self, halt: StopConditions, bar: Progress) -> None:
        """Tuners until nothing is left; one that raises is followed by another one while there is progress."""
        fruitless, attempt, failure = 0, 0, ""
        left = len(self.plan.studies)
        while left and fruitless < FRUITLESS_ATTEMPTS and not halt.wanted:
            before, attempt = self._recorded(), attempt + 1
            try:
                # Tune announces itself on stdout whatever its verbosity; stdout is for our data.
                with contextlib.redirect_stdout(io.StringIO()):
                    self._fit(attempt, halt, bar)
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
            reasons = "; ".join(dict.fromkeys([*bar.errors, failure])).strip("; ") or "no reason was reported"
            raise RunError(
                f"{left} of {len(self.plan.studies)} studies could not be finished in {FRUITLESS_ATTEMPTS} attempts "
                f"without progress: {reasons}. Everything recorded is kept. Resume with: {self._advice()}"
            )

    def _fit(self, attempt: int, halt: StopConditions, listener: Listener) -> None:
        from tuning.execution.tune_callbacks import handed_over

        with registered(listener) as heard, registered(halt) as asked:
            callbacks = [reports_callback(heard), workers_callback(asked)]
            if self.plan.placement == PACKED:
                with handed_over(callbacks):
                    build_tuner(self.owned, attempt, stopper(asked), self._without).fit()
                return
            spread = _spread(self.owned, lambda result: hand_on(listener, result))
            with spread.tuner(attempt, callbacks, stopper(asked)) as tuner:
                tuner.fit()

    def _recorded(self) -> int:
        """How many parts this owner's workers have written."""
        return len(list(self.directory.list(self.owned.term.records)))

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
            settled_models(options.record_models, studies),
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
        if status.missing:
            logger.warning(
                "the copy in MLflow is incomplete: %s are missing (%s); complete it with: tuning mlflow sync %s",
                status.missing,
                status.error or "no error was reported",
                self.directory.shown,
            )


def _spread(owned: OwnedRun, report: Listener) -> SpreadRun:
    """The spread studies of a run; report: told of every part that is written."""
    tune_settings(owned.plan.at_once)
    carried = in_memory(owned.plan.spec)
    return SpreadRun(owned.directory, owned.term, owned.plan, owned.run, carried, report, owned.timing)


class _EnoughError(Exception):
    """The run wants to stop; leaves a worker in this process."""
