"""The last fit of a spread study: a job of the queue, with the resources of its study, on whatever host there is.

The driver runs none of a customer's code itself: a fit that hangs or crashes there would hold or end all studies.
"""

from __future__ import annotations

from functools import partial

from tuning.errors import code_of
from tuning.execution.context import WorkerContext, WorkerRun
from tuning.execution.jobs import EndedStudy, FitJob
from tuning.execution.part_writer import PartWriter
from tuning.execution.reports import Listener, WorkerError
from tuning.execution.spread.predictions import folder_of, read_predictions
from tuning.execution.spread.trial_worker import opened, place_here, shards_folder, train_folder
from tuning.execution.study_run import conclude_study
from tuning.execution.worker import Worker, open_worker
from tuning.models.shards import groups_work_in
from tuning.models.trainers.trainer import workers_of
from tuning.records.ownership import Term, check_there
from tuning.records.parts import DRIVER
from tuning.records.schema import StudyRecord
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import Study
from tuning.user_code import ignore_warnings, own_settings


def run_fit(run: WorkerRun, job: FitJob, report: Listener) -> None:
    """Conclude a study in a worker of Tune's; never raises, as `run_shard`."""
    try:
        last_fit(run, job, report)
    except Exception as error:
        report(WorkerError(f"{type(error).__name__}: {error}", code_of(error)))


def last_fit(run: WorkerRun, job: FitJob, report: Listener) -> None:
    """Conclude a study in this process and record it."""
    context, _ = opened(run)
    place = groups_work_in(place_here(context.directory, job.ended.study, job.worker_group))
    with place, open_worker(context, grace=run.timing.cold_start_s) as worker:
        conclude(worker, run.term, job.ended, report)


def conclude(worker: Worker, term: Term, ended: EndedStudy, report: Listener) -> None:
    """Choose a study's winner, fit and save its model, and write the study's record."""
    context, study = worker.context, ended.study
    worker.study(0, study, ended.records)
    with ignore_warnings(), own_settings():
        record = conclude_study(
            worker,
            study,
            ended.records,
            ended_by=ended.ended_by,
            failure=ended.failure,
            predictions=partial(read_predictions, context.directory, study.id),
        )
    worker.guard.pause()
    context.background.flush()
    write_study(context, term, study, record, report)


def write_study(context: WorkerContext, term: Term, study: Study, record: StudyRecord, report: Listener) -> None:
    """Write the record of a spread study, and delete what only its trials needed."""
    directory = context.directory
    there = partial(check_there, directory, term)
    writer = PartWriter(directory, term, DRIVER, report, budgets={study.id: study.budget}, before=there)
    writer.add([record])
    writer.flush()
    for folder in (folder_of(study.id), shards_folder(study.id)):
        directory.remove_folder(folder)
    if workers_of(context.objective) is not None:
        _keep_checkpoints(directory, study, record.trial)


def _keep_checkpoints(directory: RunDirectory, study: Study, winner: int | None) -> None:
    """Delete what trainings have saved, but for the winner's."""
    folder = train_folder(study.id)
    trials = {name.removeprefix(f"{folder}/").partition("/")[0] for name in directory.list(folder)}
    for trial in trials:
        if trial.partition("-")[0] != str(winner):
            directory.remove_folder(f"{folder}/{trial}")
