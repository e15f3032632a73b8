"""Running the spread studies of a run: from its plan to what the Tuner asks, and each study's record when it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property

from tuning.basics.timing import hang_seconds
from tuning.basics.wording import one_line
from tuning.errors import StorageError, reason_of
from tuning.execution.context import WorkerContext, WorkerRun, planned_study
from tuning.execution.crash_log import FINAL_FITS
from tuning.execution.jobs import EndedStudy, TrialJob
from tuning.execution.limits import HangLimits
from tuning.execution.reports import Listener
from tuning.execution.spread.conclusions import Conclusions, conclude, last_fit, write_study
from tuning.execution.spread.open_studies import OpenStudies
from tuning.execution.spread.predictions import FOLDER as PREDICTIONS
from tuning.execution.spread.spread_study import DEATHS, SpreadStudy, SpreadTrial
from tuning.execution.spread.state import basis_of, begun_trials, checkpoints
from tuning.execution.spread.trial_worker import SHARDS, train_folder, trial_reports
from tuning.execution.study_record import quarantine
from tuning.execution.worker import Worker
from tuning.models.registry import group_of
from tuning.planning.room import Room, machines_now
from tuning.planning.run_plan import Plan
from tuning.records.parts import accepted, read_studies, read_trials, written_by_driver
from tuning.records.schema import TrialRecord
from tuning.runs.begin import OwnedRun
from tuning.runs.trial_logs import TrialLogs
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import Study


@dataclass
class SpreadRun:
    """One attempt at a run's spread studies.

    Attributes:
        owned: the run, and what is to be done.
        run: how its workers find it.
        report: told of every part that is written.
        room: what the machines of the cluster have room for.
    """

    owned: OwnedRun
    run: WorkerRun
    report: Listener
    room: Room = field(default_factory=lambda: Room(machines_now()))

    @property
    def plan(self) -> Plan:
        """What is to be done."""
        return self.owned.plan

    @property
    def directory(self) -> RunDirectory:
        """Of the run."""
        return self.owned.directory

    @contextlib.contextmanager
    def opened(self) -> Iterator[OpenStudies | None]:
        """The unfinished studies; a study's record is written when it ends. None where there are none."""
        if not self.plan.spread:
            yield None
            return
        studies = self.open()
        try:
            yield studies
        finally:
            studies.close()
            if studies.done:
                self._sweep()
        if (error := studies.broken) is not None:  # Tune was only asked to stop, it knows of no error
            raise error if isinstance(error, StorageError) else StorageError(one_line(error)) from error

    def _sweep(self) -> None:
        """Delete what drivers that died have left of trials' states, predictions and rows: nobody needs them now."""
        for folder in (PREDICTIONS, SHARDS):
            self.directory.remove_folder(folder)
        for folder in checkpoints(self.directory):
            self.directory.remove_folder(folder)

    def work(self, stopped: Callable[[], bool]) -> None:
        """Run the trials in this process, one after the other; a Tuner can go on from the records at any moment.

        stopped: asked between two steps.
        """
        with self.opened() as studies:
            while studies is not None and not stopped():
                if (fit := self._conclusions.next()) is not None:
                    last_fit(self.run, fit[1], self.report)
                    self._conclusions.end(fit[0], died=False)
                    continue
                if (found := studies.next()) is None:
                    if not self._conclusions.busy:
                        return
                    continue
                trial_id, study, trial = found
                job = self.job_of(study, trial)
                reports = trial_reports(self.run, job)
                with closing(reports):
                    for report, _ in reports:
                        if studies.result(trial_id, report):
                            break
                        if stopped():
                            return
                studies.end(trial_id)

    def job_of(self, study: SpreadStudy, trial: SpreadTrial) -> TrialJob:
        """What the worker of a trial is to do."""
        of_models = self.plan.spec.definition.objective is None
        worker_group = group_of(trial.config) if of_models else self.plan.workers
        return TrialJob.of(study.study, trial, trial.checkpoint, worker_group)

    def open(self) -> OpenStudies:
        """The unfinished studies, those in flight made; to be closed."""
        studies = OpenStudies(
            self.directory,
            self.owned.term,
            self.studies(),
            int(self.plan.spread.numbers("n_trials").sum()),
            self.report,
            self._conclude,
            interval=self.run.timing.parts_s,
            conclusions=self._conclusions,
            recorded=TrialLogs(self.directory, self.plan.spec.definition.loggers).write,
        )
        studies.open()
        return studies

    def studies(self) -> Iterator[SpreadStudy]:
        """The unfinished studies, each made when it is taken, where their records say they were."""
        names = written_by_driver(accepted(self.directory, self.owned.term))
        # The plan holds what is left. An earlier owner's record of such a study is out of date: more trials are wanted
        # now, or a part of its trials is damaged.
        own = written_by_driver(self.directory.list(self.owned.term.records))
        ended = {record.study for record in read_studies(self.directory, own, _leave_out)}
        trials: dict[str, list[TrialRecord]] = {}
        for record in read_trials(self.directory, names, _leave_out):
            trials.setdefault(record.study, []).append(record)
        begun = begun_trials(self.directory)
        for study in self.plan.spread:
            if study.id in ended:
                continue
            records, basis = trials.pop(study.id, []), basis_of(study)
            going = {name: trial for name, trial in begun.pop(study.id, {}).items() if trial.basis == basis}
            if self.plan.workers is not None and not records and not going:
                self.directory.remove_folder(train_folder(study.id))  # of what it was before its data has changed
            if study.fixed is not None:  # nothing of it is left but its fit
                self._record(EndedStudy(study, []))
                continue
            try:
                live = self._study(study)
            except Exception as error:
                self._record(EndedStudy(study, records, failure=reason_of(error)))
                continue
            try:
                live.resume(records, going)
            except Exception as error:
                live.give_up(error)
            yield live

    def _study(self, study: Study) -> SpreadStudy:
        definition = self.plan.spec.definition
        patience = hang_seconds(study.customer.about_rows, of_objective=definition.objective is not None)
        hangs = HangLimits(definition.limits, patience, self.run.timing.cold_start_s)
        return SpreadStudy(planned_study(self.owned.run, self.plan.spec, study), hangs)

    def _conclude(self, live: SpreadStudy) -> None:
        """Have the study's winner chosen and refitted, and record the study."""
        if live.crashed is None:
            self._record(EndedStudy(live.study, live.records, live.stopped_by, live.failure))
            return
        number, error = live.crashed
        self._quarantine(live.study, live.records, f"trial {number}", error)

    def _record(self, ended: EndedStudy) -> None:
        """In a worker, unless nothing of the customer's is to run."""
        definition = self.plan.spec.definition
        if definition.objective is not None and definition.prepare is None:
            context = self._context()
            record = conclude(Worker(context), ended)
            write_study(context, self.owned.term, ended.study, record, self.report)
        else:
            self._conclusions.add(ended)

    @cached_property
    def _conclusions(self) -> Conclusions:
        return Conclusions(
            worker_groups=self.plan.workers is None and self.plan.worker_group is not None,
            room=self.room,
            crashed=lambda ended: self._quarantine(ended.study, ended.records, FINAL_FITS),
        )

    def _quarantine(self, study: Study, records: Sequence[TrialRecord], what: str, error: str | None = None) -> None:
        times = self.plan.spec.definition.limits.crashes_before_quarantine
        context = self._context()
        record = quarantine(context, study, records, what=what, times=times, cause=DEATHS, error=error)
        write_study(context, self.owned.term, study, record, self.report)

    def _context(self) -> WorkerContext:
        return WorkerContext.open(self.directory, self.owned.run, self.plan.spec)


def _leave_out(name: str, error: Exception) -> None:
    """The trials of a damaged part run again."""
