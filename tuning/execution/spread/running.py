"""Running the spread studies of a run: from its plan to what the Tuner asks, and each study's record when it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

from tuning.basics.timing import hang_seconds
from tuning.basics.wording import one_line
from tuning.errors import StorageError, reason_of
from tuning.execution.jobs import EndedStudy, FitJob, TrialJob
from tuning.execution.reports import Listener
from tuning.execution.spread.open_studies import OpenStudies
from tuning.execution.spread.spread_study import HangLimits, SpreadStudy, SpreadTrial
from tuning.execution.spread.state import PREDICTIONS, basis_of, begun_trials, checkpoints
from tuning.execution.spread.worker import SHARDS, conclude, last_fit, train_folder, trial_reports
from tuning.execution.worker import Worker, WorkerContext, WorkerRun, planned_study
from tuning.models.registry import group_of
from tuning.planning.capacity import Capacity, machines_now
from tuning.records.parts import DRIVER
from tuning.runs.begin import OwnedRun
from tuning.runs.resume import recorded
from tuning.runs.trial_logs import TrialLogs
from tuning.study.study import Study


@dataclass
class SpreadRun:
    """One attempt at a run's spread studies.

    Attributes:
        owned: the run, and what is to be done.
        run: how its workers find it.
        report: told of every part that is written.
        capacity: what the machines of the cluster have room for.
    """

    owned: OwnedRun
    run: WorkerRun
    report: Listener
    capacity: Capacity = field(default_factory=lambda: Capacity(machines_now()))

    @contextlib.contextmanager
    def opened(self) -> Iterator[OpenStudies | None]:
        """Return the unfinished studies; a study's record is written when it ends. None where there are none."""
        if not self.owned.plan.spread:
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
            self.owned.directory.remove_folder(folder)
        for folder in checkpoints(self.owned.directory):
            self.owned.directory.remove_folder(folder)

    def work(self, stopped: Callable[[], bool]) -> None:
        """Run the trials in this process, one after the other; a Tuner can go on from the records at any moment.

        stopped: asked between two steps.
        """
        with self.opened() as studies:
            while studies is not None and not stopped() and (found := studies.next()) is not None:
                name, job = found
                if isinstance(job, FitJob):
                    last_fit(self.run, job, self.report)
                else:
                    with closing(trial_reports(self.run, job)) as reports:
                        for report, _ in reports:
                            if studies.result(name, report):
                                break
                            if stopped():
                                return
                studies.end(name)

    def open(self) -> OpenStudies:
        """Return the unfinished studies, those in flight made; to be closed."""
        studies = OpenStudies(
            self.owned.directory,
            self.owned.term,
            self.studies(),
            int(self.owned.plan.spread.numbers("n_trials").sum()),
            self.report,
            self.capacity,
            self._last_fit,
            self._job_of,
            interval=self.run.timing.parts_s,
            recorded=TrialLogs(self.owned.directory, self.owned.plan.spec.definition.loggers).write,
        )
        studies.open()
        return studies

    def _job_of(self, study: SpreadStudy, trial: SpreadTrial) -> TrialJob:
        of_models = self.owned.plan.spec.definition.objective is None
        worker_group = group_of(trial.config) if of_models else self.owned.plan.workers
        return TrialJob.from_trial(study.study, trial, trial.checkpoint, worker_group)

    def studies(self) -> Iterator[SpreadStudy | EndedStudy]:
        """Return the unfinished studies, each made when it is taken, where their records say they were."""
        known, finished = recorded(self.owned.directory, self.owned.term, DRIVER)
        begun = begun_trials(self.owned.directory)
        for study in self.owned.plan.spread:
            if study.id in finished:
                continue
            records, basis = known.pop(study.id, []), basis_of(study)
            going = {name: trial for name, trial in begun.pop(study.id, {}).items() if trial.basis == basis}
            if self.owned.plan.workers is not None and not records and not going:
                self.owned.directory.remove_folder(train_folder(study.id))  # of what it was before its data has changed
            if study.fixed is not None:  # nothing of it is left but its fit
                yield EndedStudy(study, [])
                continue
            try:
                live = self._study(study)
            except Exception as error:
                yield EndedStudy(study, records, failure=reason_of(error))
                continue
            try:
                live.resume(records, going)
            except Exception as error:
                live.give_up(error)
            yield live

    def _study(self, study: Study) -> SpreadStudy:
        definition = self.owned.plan.spec.definition
        patience = hang_seconds(study.customer.about_rows, of_objective=definition.objective is not None)
        hangs = HangLimits(definition.limits, patience, self.run.timing.cold_start_s)
        return SpreadStudy(planned_study(self.owned.run, self.owned.plan.spec, study), hangs)

    def _last_fit(self, ended: EndedStudy) -> FitJob | None:
        """See `OpenStudies`."""
        definition, term = self.owned.plan.spec.definition, self.owned.term
        if ended.crashed is None and (definition.objective is None or definition.prepare is not None):
            worker_groups = self.owned.plan.workers is None and self.owned.plan.worker_group is not None
            return FitJob.from_study(ended, worker_groups=worker_groups)
        context = WorkerContext.open(self.owned.directory, self.owned.run, self.owned.plan.spec)
        conclude(Worker(context), term, ended, self.report)
        return None
