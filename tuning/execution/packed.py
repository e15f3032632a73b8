"""Placement "packed": a worker goes through a batch of studies in process.

A customer is loaded once; its folds and encodings are made once. Finished trials are written as a record part
first and reported second. The work is a plain function, `work_batch`.

A worker that dies is started again by Tune. It reads what is recorded of its batch, and from the progress markers of
those before it which trial each of them died in: the studies concerned come last and alone, every trial written at
once.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import count

from tuning.basics.wording import amount
from tuning.errors import StorageError
from tuning.execution.crash_log import STARTING, Crash, Nodes, ProgressMarker, crashes
from tuning.execution.helper_actors import HelperJob, StateLostError, helpers_of
from tuning.execution.pool import train_pool
from tuning.execution.reports import Listener, PartWriter
from tuning.execution.study_record import quarantine
from tuning.execution.study_run import UnfinishedStudyError, run_study, spare_loading
from tuning.execution.worker import TrialData, Worker, WorkerContext, WorkerRun, open_worker
from tuning.records.ownership import check_there
from tuning.records.parts import POOL_BATCH, PartWritten, pool_part
from tuning.records.schema import Record, TrialRecord
from tuning.runs.plan_file import read_batch, read_plan
from tuning.runs.pool_file import pool_settled, write_pool
from tuning.runs.resume import recorded
from tuning.runs.trial_logs import TrialLogs
from tuning.study.helpers import HelperPool
from tuning.study.study import Study
from tuning.user_code import ignore_warnings, own_settings

FALSE_STARTS = 5  # of a batch's workers, before its first study
WORK = run_study.__code__.co_filename  # the thread that is in this file is the one that a crash happened to


class WornOutError(Exception):
    """The worker has grown too large for another study, or its study begins again; a new process goes on."""


class CondemnedError(UnfinishedStudyError):
    """One of a study's trials has ended its helpers too often."""

    def __init__(self, crash: Crash) -> None:
        super().__init__(crash.where)
        self.crash = crash


class Batch:
    """One attempt at a batch, or at the run's pool.

    Attributes:
        run, number, report, nodes: see `work_batch`.
        found: how earlier workers ended.
        studies: of the batch.
        known: recorded trials by study.
    """

    worker: Worker
    writer: PartWriter

    def __init__(self, run: WorkerRun, number: int, report: Listener, nodes: Nodes | None) -> None:
        self.run, self.number, self.report, self.nodes = run, number, report, nodes
        self.directory = run.directory
        self.found = [] if nodes is None else crashes(self.directory, run.term, number, WORK, nodes)
        self.studies: Sequence[Study] = ()
        self.known: dict[str, list[TrialRecord]] = {}

    @property
    def counts(self) -> Counter[tuple[int, int]]:
        """How often each trial, as (position of the study, trial), has ended its worker."""
        return Counter((crash.position, crash.trial) for crash in self.found)

    def train_pool(self) -> None:
        """Train the run's pool and record it, where that has not been done."""
        directory, term = self.directory, self.run.term
        if pool_settled(directory):
            return
        plan = read_plan(directory, term, self.run.spec)
        context = WorkerContext.open(directory, plan.run, plan.spec)
        with self._opened(context, []) as worker:
            pool, record = train_pool(worker, plan, self.found)
        check_there(directory, term)
        part, data = pool_part(term, record)
        directory.write(part, data)
        write_pool(directory, pool)
        self.report(PartWritten(part))

    def run_studies(self) -> None:
        """Run all unfinished studies: those that a worker died in come last, and every trial is written at once."""
        directory, term = self.directory, self.run.term
        plan = read_batch(directory, term, self.number, self.run.spec)
        self.studies = list(plan.studies)
        self.known, finished = recorded(directory, term, self.number)
        suspects = {crash.position for crash in self.found}
        order = sorted(range(len(self.studies)), key=lambda position: position in suspects)
        left = [position for position in order if self.studies[position].id not in finished]
        to_come = [self.studies[position] for position in left]
        context = WorkerContext.open(directory, plan.run, plan.spec, to_come, packs=plan.packs)
        self.writer = PartWriter(
            directory,
            term,
            self.number,
            self.report,
            self.run.timing.parts_s,
            flush_files=context.background.flush,
            budgets={study.id: study.budget for study in self.studies},
            recorded=TrialLogs(directory, context.spec.definition.loggers).write,
            before=partial(check_there, directory, term),
        )
        with ExitStack() as stack:
            stack.push(self.writer.flush_on_exit)
            self.worker = stack.enter_context(self._opened(context, to_come))
            for position in left:
                self._turn_to(position, suspect=position in suspects)
            self._write()

    @contextmanager
    def _opened(self, context: WorkerContext, studies: Sequence[Study]) -> Iterator[Worker]:
        """Open the worker. studies: those to come."""
        if self.nodes is None:
            with ignore_warnings():
                yield Worker(context)
            return
        _spare_what_stays()
        if (starts := sum(crash.position == STARTING for crash in self.found)) >= FALSE_STARTS:
            times, cause = amount(starts, "time"), self.found[-1].cause
            raise StorageError(f"the worker of batch {self.number} died {times} before its first study: {cause}")
        with (
            ProgressMarker(self.directory, self.run.term, self.number, self.nodes.name) as marker,
            open_worker(
                context,
                self.run.timing.cold_start_s,
                marker=marker,
                found=self.found,
                slots=self.nodes.slots,
                customers=[study.customer for study in studies],
            ) as worker,
        ):
            spare_loading(worker, studies[0] if studies else None)
            yield worker

    def _turn_to(self, position: int, *, suspect: bool) -> None:
        """Run a study, or put it aside where one of its trials has ended its worker too often."""
        study = self.studies[position]
        if suspect:
            self._write()
            self.writer.interval = 0.0
            if (crash := self._condemned(position)) is not None:
                self.writer.add([self._quarantine(study, crash)])
                return
        if (memory := self.worker.memory) is not None and memory.worn_out:
            self._write()
            raise WornOutError
        self._study(position, study)

    def _study(self, position: int, study: Study) -> None:
        known = self.known.get(study.id, [])
        self.worker.study(position, study, known)
        with own_settings():
            try:
                for records in run_study(self.worker, study, known, partial(self._helpers, position)):
                    self.worker.guard.took(record for record in records if isinstance(record, TrialRecord))
                    self.writer.add(self._with_attempts(position, records))
                    if self.writer.due:
                        self._write()
            except CondemnedError as condemned:
                self.writer.add([self._quarantine(study, condemned.crash)])
            except StateLostError as lost:
                raise WornOutError from lost

    def _helpers(self, position: int, data: TrialData) -> AbstractContextManager[HelperPool | None]:
        """See `FindHelpers`."""
        if self.nodes is None:
            return nullcontext()
        job = HelperJob(self.run, self.number, position)
        return helpers_of(job, self.nodes, data, partial(self.blame, position), self.worker.waiting)

    def blame(self, position: int, trial: int, stack: str) -> None:
        """Note that a trial has ended the helper that trained it; `CondemnedError` where that is too often."""
        self.found.append(Crash(position, trial, stack))
        if (crash := self._condemned(position)) is not None:
            raise CondemnedError(crash)

    def _write(self) -> None:
        self.worker.guard.pause()
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
        """Return the last crash of the study with a trial that has ended its worker too often."""
        limit = self.worker.context.spec.definition.limits.crashes_before_quarantine
        keys = [key for key, count in self.counts.items() if key[0] == position and count >= limit]
        return next((crash for crash in reversed(self.found) if (crash.position, crash.trial) in keys), None)

    def _quarantine(self, study: Study, crash: Crash) -> Record:
        times = self.counts[crash.position, crash.trial]
        known = self.known.get(study.id, [])
        limits, cause = self.worker.context.spec.definition.limits, crash.cause
        if crash.timed_out and limits.trial_seconds is None and limits.study_seconds is None:
            cause += ", which is taken for a hang where none is set (limits.trial_seconds)"
        return quarantine(
            self.worker.context, study, known, what=crash.where, times=times, cause=cause, error=crash.stack
        )


def work_batch(run: WorkerRun, batch: int, report: Listener, nodes: Nodes | None = None) -> None:
    """Run all unfinished studies of a batch and record them; of `POOL_BATCH` train the run's pool.

    nodes: with None nothing is noted for the case of a crash, and what hangs or needs too much memory goes on, as when
    somebody debugs in this process.
    """
    attempt = Batch(run, batch, report, nodes)
    if batch == POOL_BATCH:
        attempt.train_pool()
    else:
        attempt.run_studies()


_batch_numbers = count()  # batches of this process


def _spare_what_stays() -> None:
    """Have Python's garbage collector leave alone what this process has loaded, once its first batch has loaded it.

    Looking through all modules again and again takes a fourteenth of a worker's time with tiny customers.
    """
    if next(_batch_numbers) == 1:
        gc.collect()
        gc.freeze()
