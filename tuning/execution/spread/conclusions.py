"""Concluding spread studies: jobs of the queue, each with the resources of its study, on whatever host there is.

The driver runs none of a customer's code itself: a fit that hangs or crashes there would hold or end all studies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
from tuning.planning.room import Room, Takes
from tuning.records.ownership import Term, check_there
from tuning.records.parts import DRIVER
from tuning.records.schema import StudyRecord
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import Study
from tuning.user_code import ignore_warnings, own_settings


@dataclass
class Conclusions:
    """The studies that are to be concluded, and those that are being concluded.

    Attributes:
        worker_groups: whether there are models that several processes train.
        room: of the machines.
        crashed: told a study that has ended its workers.
    """

    worker_groups: bool
    room: Room
    crashed: Callable[[EndedStudy], None]
    _waiting: deque[EndedStudy] = field(default_factory=deque)
    _running: dict[str, tuple[EndedStudy, int]] = field(default_factory=dict)  # with how many machines there were
    _given: int = 0

    @property
    def busy(self) -> bool:
        """Whether a study is not concluded yet."""
        return bool(self._waiting or self._running)

    def add(self, ended: EndedStudy) -> None:
        """Conclude a study, as soon as there is room."""
        self._waiting.append(ended)

    def next(self) -> tuple[str, FitJob] | None:
        """(id, job) of the next Tune trial; None when there is none now."""
        if not self._waiting:
            return None
        ended = self._waiting.popleft()
        self._given += 1
        name = f"fit_{self._given:06d}"
        self._running[name] = ended, len(self.room.machines())
        return name, FitJob.of(ended, worker_groups=self.worker_groups)

    def no_place(self, name: str, takes: Takes) -> None:
        """No machine comes that has room for a job; the study's record has that as its reason."""
        ended, _ = self._running.pop(name)
        self._waiting.append(replace(ended, failure=self.room.no_place(takes, "its last fit", "`trials`")))

    def end(self, name: str, *, died: bool) -> None:
        """A job has ended. died: so have its workers; with a machine gone, the next Tuner takes the study up again."""
        ended, machines = self._running.pop(name, (None, 0))
        if ended is not None and died and len(self.room.machines()) >= machines:
            self.crashed(ended)


def run_fit(run: WorkerRun, job: FitJob, report: Listener) -> None:
    """Conclude a study in a worker; never raises, as `run_shard`."""
    try:
        last_fit(run, job, report)
    except Exception as error:
        report(WorkerError(f"{type(error).__name__}: {error}", code_of(error)))


def last_fit(run: WorkerRun, job: FitJob, report: Listener) -> None:
    """Conclude a study in this process and record it."""
    context, _ = opened(run)
    place = groups_work_in(place_here(context.directory, job.ended.study, job.worker_group))
    with place, open_worker(context, grace=run.timing.cold_start_s) as worker:
        record = conclude(worker, job.ended)
    write_study(context, run.term, job.ended.study, record, report)


def conclude(worker: Worker, ended: EndedStudy) -> StudyRecord:
    """Return the record of a study; its model is written."""
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
    context.background.flush()
    return record


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
