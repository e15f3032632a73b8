"""Placement "packed": a worker goes through a shard of studies in process.

A customer is loaded once; its folds and encodings are made once. Finished trials are written as a record part
first and reported second. The work is a plain function, `work_shard`; `run_shard` is what a worker of Tune's does.

A worker that dies is started again by Tune. It reads what is recorded of its shard, and from the progress markers of
those before it which trial each of them died in: the studies concerned come last and alone, every trial written at
once.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from operator import attrgetter

import pyarrow as pa

from tuning.basics.timing import hang_seconds
from tuning.basics.wording import amount
from tuning.errors import StorageError, code_of
from tuning.execution.context import TrialData, WorkerContext, WorkerRun
from tuning.execution.crash_log import CONCLUDING, LOADING, STARTING, Crash, ProgressMarker, counted, crashes
from tuning.execution.helper_actors import HelperJob, StateLostError, helpers_of
from tuning.execution.limits import MemoryLimit, TimeLimits, allocated, loading_grace
from tuning.execution.nodes import Nodes, ray_nodes
from tuning.execution.part_writer import PartWriter
from tuning.execution.quarantine import quarantine
from tuning.execution.reports import Listener, WorkerError
from tuning.execution.study_run import Hooks, UnfinishedStudyError, run_study
from tuning.execution.tune_reports import report_to_tune
from tuning.execution.warm_up import warm_up
from tuning.records.ownership import Term, check_there
from tuning.records.parts import STUDIES, TRIALS, read_table, shard_parts
from tuning.records.schema import Record, TrialRecord
from tuning.records.tables import KEYS, distinct, records_of
from tuning.runs.plan_file import read_shard
from tuning.runs.resume import handed_over
from tuning.runs.trial_logs import TrialLogs
from tuning.steps import Step
from tuning.storage.run_directory import RunDirectory
from tuning.study.helpers import HelperPool
from tuning.study.study import Study
from tuning.user_code import ignore_warnings, own_settings

FALSE_STARTS = 5  # of a shard's workers, before its first study
WORK = run_study.__code__.co_filename  # the thread that is in this file is the one that a crash happened to


class WornOutError(Exception):
    """The worker has grown too large for another study; a new process goes on."""


class CondemnedError(UnfinishedStudyError):
    """One of a study's trials has ended its helpers too often."""

    def __init__(self, crash: Crash) -> None:
        super().__init__(crash.where)
        self.crash = crash


@dataclass
class WorkerHooks(Hooks):
    """Notes where the worker is, sets its limits, and finds its helpers."""

    marker: ProgressMarker
    guard: TimeLimits
    shard: Shard
    nodes: Nodes
    job: HelperJob
    position: int = STARTING

    def study(self, position: int, patience: float) -> None:
        """The study at this position of the shard begins. patience: as of `TimeLimits.study`."""
        self.position = position
        self.guard.study(patience)
        self.marker.loaded(self.guard.loading)

    def loading(self) -> None:
        self.marker.at(self.position, LOADING)
        self.guard.part()

    def trial(self, number: int) -> None:
        self.marker.at(self.position, number)
        self.guard.trial()

    def concluding(self) -> None:
        self.marker.at(self.position, CONCLUDING)
        self.guard.final_fit()

    def saving(self) -> None:
        self.guard.pause()

    @property
    def grace(self) -> float:
        return self.guard.grace

    def each_step(self, start: Callable[..., Iterable[Step]]) -> Callable[..., Iterable[Step]]:
        return self.guard.each_step(start)

    def helpers(self, data: TrialData) -> AbstractContextManager[HelperPool | None]:
        job = replace(self.job, position=self.position)
        return helpers_of(job, self.nodes, data, partial(self.shard.blame, self.position), self._waiting)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        self.guard.pause()  # each helper has limits of its own
        yield
        self.guard.part()


@dataclass
class Shard:
    """One attempt at a shard.

    left: positions of the studies to run, in that order. known: recorded trials by study. found: how earlier workers
    ended.
    """

    context: WorkerContext
    studies: Sequence[Study]
    left: Sequence[int]
    writer: PartWriter
    known: dict[str, list[TrialRecord]]
    found: list[Crash] = field(default_factory=list)

    @property
    def counts(self) -> Counter[tuple[int, int]]:
        return counted(self.found)

    def read_together(self) -> None:
        """Read what several customers have in common; that is no one's time and memory in particular."""
        for position in self.left:
            customer = self.studies[position].customer
            if customer.key is not None:
                with suppress(Exception):  # its study says why
                    self.context.loader.read(customer)

    def work(self, watcher: WorkerHooks | None = None, memory: MemoryLimit | None = None) -> None:
        """Run all unfinished studies: those that a worker died in come last, and every trial is written at once."""
        suspects = {crash.position for crash in self.found}
        for position in self.left:
            study = self.studies[position]
            if position in suspects:
                self._write(watcher)
                self.writer.interval = 0.0
                if (crash := self._condemned(position)) is not None:
                    self.writer.add([self._quarantine(study, crash)])
                    continue
            if memory is not None and memory.worn_out:
                self._write(watcher)
                raise WornOutError
            self._study(position, study, watcher)
        self._write(watcher)

    def _study(self, position: int, study: Study, watcher: WorkerHooks | None) -> None:
        known = self.known.get(study.id, [])
        if watcher is not None:
            objective = self.context.objective is not None
            watcher.study(position, hang_seconds(study.customer.about_rows, of_objective=objective))
            watcher.guard.took(known)
        with own_settings():
            try:
                for records in run_study(self.context, study, known, watch=watcher):
                    if watcher is not None:
                        watcher.guard.took(record for record in records if isinstance(record, TrialRecord))
                    self.writer.add(self._with_attempts(position, records))
                    if self.writer.due:
                        self._write(watcher)
            except CondemnedError as condemned:
                self.writer.add([self._quarantine(study, condemned.crash)])

    def blame(self, position: int, trial: int, stack: str) -> None:
        """A trial has ended the helper that trained it; `CondemnedError` where that is too often."""
        self.found.append(Crash(position, trial, stack))
        if (crash := self._condemned(position)) is not None:
            raise CondemnedError(crash)

    def _write(self, watcher: WorkerHooks | None) -> None:
        if watcher is not None:
            watcher.saving()
        self.writer.flush()

    def _with_attempts(self, position: int, records: list[Record]) -> list[Record]:
        if not self.found:
            return records
        counts = self.counts
        return [
            replace(record, attempt=1 + counts[position, record.trial]) if isinstance(record, TrialRecord) else record
            for record in records
        ]

    def _condemned(self, position: int) -> Crash | None:
        """The last crash of a study one of whose trials has ended its worker too often."""
        limit = self.context.spec.definition.limits.crashes_before_quarantine
        keys = [key for key, count in self.counts.items() if key[0] == position and count >= limit]
        return next((crash for crash in reversed(self.found) if (crash.position, crash.trial) in keys), None)

    def _quarantine(self, study: Study, crash: Crash) -> Record:
        times = self.counts[crash.position, crash.trial]
        known = self.known.get(study.id, [])
        limits, cause = self.context.spec.definition.limits, crash.cause
        if crash.timed_out and limits.trial_seconds is None and limits.study_seconds is None:
            cause += ", which is taken for a hang where none is set (limits.trial_seconds)"
        return quarantine(self.context, study, known, what=crash.where, times=times, cause=cause, error=crash.stack)


def work_shard(run: WorkerRun, shard: int, report: Listener, nodes: Nodes | None = None) -> None:
    """Run all unfinished studies of a shard and record them.

    nodes: with None nothing is noted for the case of a crash, and what hangs or needs too much memory goes on, as when
    somebody debugs in this process.
    """
    directory, term, timing = run.directory, run.term, run.timing
    plan = read_shard(directory, term, shard, run.spec)
    studies = list(plan.studies)
    known, finished = recorded(directory, term, shard)
    found = [] if nodes is None else crashes(directory, term, shard, WORK, fetch=nodes.fetch, lost=nodes.lost)
    suspects = {crash.position for crash in found}
    order = sorted(range(len(studies)), key=lambda position: position in suspects)
    left = [position for position in order if studies[position].id not in finished]
    context = WorkerContext.open(
        directory, plan.run, plan.spec, [studies[position] for position in left], packs=plan.packs
    )
    budgets = {study.id: study.budget for study in studies}
    logs = TrialLogs(directory, context.spec.definition.loggers)
    there = partial(check_there, directory, term)
    flush_files = context.background.flush
    writer = PartWriter(directory, term, shard, report, timing.parts_s, flush_files, budgets, logs.write, there)
    work = Shard(context, studies, left, writer, known, found)
    with ExitStack() as stack:
        stack.enter_context(ignore_warnings())
        stack.push(writer.flush_on_exit)
        if nodes is None:
            work.work()
            return
        _spare_what_stays()
        if (starts := sum(crash.position == STARTING for crash in found)) >= FALSE_STARTS:
            raise StorageError(
                f"the worker of shard {shard} died {amount(starts, 'time')} before its first study: {found[-1].cause}"
            )
        limits = context.spec.definition.limits
        marker = stack.enter_context(ProgressMarker(directory, term, shard, nodes.name))
        before = allocated()
        work.read_together()
        memory = stack.enter_context(MemoryLimit(limits.memory_gb, nodes.slots, allocated() - before))
        timed = limits.trial_seconds is not None or limits.study_seconds is not None
        warm = not (timed and left) or warm_up(context, studies[left[0]])
        grace = 0.0 if warm else loading_grace(timing.cold_start_s, (crash.loading for crash in found))
        guard = stack.enter_context(TimeLimits(limits, marker.stack, grace))
        job = HelperJob(run, shard, STARTING)
        work.work(WorkerHooks(marker, guard, work, nodes, job), memory)


_shard_numbers = count()  # shards of this process


def _spare_what_stays() -> None:
    """Have Python's garbage collector leave alone what this process has loaded, once its first shard has loaded it.

    Looking through all modules again and again takes a fourteenth of a worker's time with tiny customers.
    """
    if next(_shard_numbers) == 1:
        gc.collect()
        gc.freeze()


def recorded(directory: RunDirectory, term: Term, shard: int) -> tuple[dict[str, list[TrialRecord]], set[str]]:
    """What is known of a shard from before: trials by study, and the ids of finished studies."""
    names = shard_parts(directory, term, shard)
    own = read_table(directory, names, TRIALS, damaged=rerun_damaged)
    trials = distinct(pa.concat_tables([handed_over(directory, term, shard), own]), KEYS[TRIALS])
    by_study: dict[str, list[TrialRecord]] = {}
    for record in sorted(records_of(trials, TrialRecord), key=attrgetter("key")):
        by_study.setdefault(record.study, []).append(record)
    return by_study, {*read_table(directory, names, STUDIES, ["study"], rerun_damaged)["study"].to_pylist()}


def rerun_damaged(name: str, error: Exception) -> None:
    """A damaged part costs its trials only: they are run again."""


def run_shard(run: WorkerRun, shard: int) -> None:
    """Run a shard in a worker of Tune's.

    It never raises: Tune would start it again for ever. What went wrong is reported, and the shard ends.
    """
    try:
        work_shard(run, shard, report_to_tune, ray_nodes())
    except (WornOutError, StateLostError):
        os._exit(0)  # Tune starts another process for what is left
    except Exception as error:
        report_to_tune(WorkerError(f"{type(error).__name__}: {error}", code_of(error)))
