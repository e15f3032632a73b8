"""What a worker does for spread studies: it trains a trial, each step a report, or fits a study's winner.

A worker keeps the customers it has loaded: their other trials on a reused actor do not load them again. A state is
saved through Tune about every `Timing.checkpoint_s` seconds, so that a killed trial goes on from there.

A last fit is a job, with the resources of its study, on whatever host there is: the driver runs none of a customer's
code itself, since a fit that hangs or crashes there would hold or end all studies.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial

from tuning.basics.seeds import trial_seed
from tuning.basics.wording import raised, stack
from tuning.errors import CustomerError, StudyError, reason_of
from tuning.evaluation.study_data import StudyData
from tuning.execution.jobs import EndedStudy, FitJob, TrialJob
from tuning.execution.reports import FailureReport, Listener, PartWriter, StepReport, TrialLength, report_to_tune
from tuning.execution.spread.state import (
    BegunTrial,
    Reported,
    SavedState,
    basis_of,
    folder_of,
    read_predictions,
    read_state,
    with_predictions,
    write_predictions,
    write_state,
)
from tuning.execution.study_record import quarantine
from tuning.execution.study_run import conclude_study
from tuning.execution.worker import Worker, WorkerContext, WorkerRun, open_worker
from tuning.models.compute import trains_with
from tuning.models.registry import group_of
from tuning.models.shards import GroupPlace, groups_work_in
from tuning.models.trainers.trainer import workers_of
from tuning.models.trainers.training import Home
from tuning.models.worker_group import ActorGroup
from tuning.notes import EndCode
from tuning.records.ownership import Term, check_there
from tuning.records.parts import DRIVER
from tuning.records.schema import StudyRecord
from tuning.runs.plan_file import read_spread
from tuning.steps import Step
from tuning.storage.names import slug
from tuning.storage.run_directory import RunDirectory
from tuning.study.core import NO_STEP
from tuning.study.interfaces import Configuration
from tuning.study.local_trial import LocalTrial, is_ctrl_c
from tuning.study.record import worker_name
from tuning.study.study import Study, StudyTraining
from tuning.user_code import ignore_warnings, own_settings
from tuning.worker_groups.xgboost_actors import TrialPlace

SHARDS = "shards"
DEATHS = "a crash, a time limit or too much memory"
KEPT_BYTES = 200e6  # of customers' files; in memory they are several times as large


def run_trial(run: WorkerRun, job: TrialJob) -> None:
    """Train one trial in a worker of Tune's, every step reported.

    An exception of the user's code is reported too, and not tried again.
    """
    from ray import tune

    # Tune ends a stopped trial by a SystemExit from `tune.report`.
    checkpoint = tune.get_checkpoint()  # of this trial, after a lost worker
    path = checkpoint and str(checkpoint.path)
    with closing(trial_reports(run, job, path)) as reports:
        for report, state in reports:
            if state is None:
                report_to_tune(report)
                continue
            with tempfile.TemporaryDirectory() as folder:
                study = opened(run)[1][job.study]
                write_state(folder, state, BegunTrial(study.id, basis_of(study), job.trial, job.config))
                report_to_tune(report, tune.Checkpoint.from_directory(folder))


def trial_reports(run: WorkerRun, job: TrialJob, checkpoint: str | None = None) -> Generator[Reported, None, None]:
    """Train a trial, wherever, and report it; an exception is its last report.

    checkpoint: the path of a newer one than its job's.
    """
    with ExitStack() as opened_here:
        try:
            reports = _prepare(opened_here, run, job, checkpoint)
        except BaseException as error:
            if is_ctrl_c(error):
                raise
            of_study = isinstance(error, CustomerError | StudyError)
            yield FailureReport(reason_of(error), of_study=True) if of_study else _raised(error), None
            return
        yield from reports


def _prepare(at_hand: ExitStack, run: WorkerRun, job: TrialJob, checkpoint: str | None) -> Iterator[Reported]:
    """Return the reports of a trial, when it has all that it needs. at_hand: closes that."""
    at_hand.enter_context(ignore_warnings())
    grace = 0.0 if (run.uri, run.term.folder) in _OPEN else run.timing.cold_start_s
    context, studies = opened(run)
    study = studies[job.study]
    worker_group = group_of(job.config) if context.objective is None else None
    worker = at_hand.enter_context(open_worker(context, grace))
    at_hand.enter_context(groups_work_in(place_here(context.directory, study, worker_group)))
    at_hand.enter_context(trains_with(study.resources.compute))
    data = context.data(study.customer)
    training = context.training(study, data, _home(context, study, job))
    training = replace(training, start=worker.guard.limited(training.start))
    seed, state = trial_seed(study.seed, job.trial), _restored(context.directory, job, checkpoint)
    reports = step_reports(training, job.config, seed, state, run.timing.checkpoint_s)
    if isinstance(data, StudyData) and data.kept is not None:
        write = partial(write_predictions, context.directory, study.id, job.trial)
        reports = with_predictions(reports, data.kept, job.config, seed, write)
    at_hand.callback(reports.close)
    return reports


def step_reports(
    training: StudyTraining,
    config: Configuration,
    seed: int,
    restored: SavedState | None = None,
    pause: float = math.inf,
) -> Generator[Reported, None, None]:
    """Train one configuration and report each step; an exception of its code becomes the last report.

    restored: what an earlier worker has saved; training goes on from there. pause: seconds between states.
    """
    length: TrialLength | None = None

    def start(config: Configuration, _: int, state: object) -> Iterator[Step]:
        nonlocal length
        shape, longest = training.shape(config), training.cohort_steps(config)
        length = TrialLength(int(shape.full_steps), shape.best_prefix, shape.progress, longest)
        return map(_plain, training.start(config, seed, state))

    trial, made = LocalTrial(0, "", dict(config), ""), list[StepReport]()
    if restored is not None:
        trial.begin_from(restored.state)
        made += restored.reports
        if made:
            trial.seconds, trial.fit_seconds = made[-1].seconds, made[-1].fit_seconds
    saved = time.monotonic()
    try:
        while (step := trial.pull(start)) is not None:
            assert length is not None
            made.append(StepReport(step, trial.seconds, trial.fit_seconds, length, worker_name()))
            if trial.get_state is None or time.monotonic() - saved < pause:
                yield made[-1], None
                continue
            yield made[-1], SavedState(trial.get_state(), tuple(made))
            saved = time.monotonic()
    except StudyError as error:
        yield FailureReport(reason_of(error), of_study=True), None
    else:
        if trial.verdict is not None and trial.verdict.reason is not None:
            yield FailureReport(trial.verdict.reason, trial.error, length), None
        elif not made:
            yield FailureReport(NO_STEP, length=length), None
    finally:
        trial.release()


def _raised(error: BaseException) -> FailureReport:
    return FailureReport(EndCode.RAISED(type(error).__name__, error=raised(error)), stack(error))


def _plain(step: Step) -> Step:
    """Return a step in plain numbers; an exception where one is no number."""
    folds = tuple(float(score) for score in step.fold_scores)
    figures = {name: float(figure) for name, figure in step.metrics.items()}
    return replace(step, step=int(step.step), score=float(step.score), fold_scores=folds, metrics=figures)


def place_here(directory: RunDirectory, study: Study, worker_group: ActorGroup | None) -> GroupPlace | None:
    """Return where a group of this study works, this process's placement group; None without a group or without Ray."""
    if worker_group is None:
        return None
    import ray
    from ray.util.placement_group import get_current_placement_group

    if not ray.is_initialized() or (group := get_current_placement_group()) is None:
        return None
    return TrialPlace(group, directory.uri, shards_folder(study.id), directory.timing.actor_start_s)


def shards_folder(study: str) -> str:
    """Return where the rows of a study's trials are, as long as it runs. study: its id."""
    return f"{SHARDS}/{slug(study)}"


def train_folder(study: str) -> str:
    """Return where the trainings of a study's trials keep their checkpoints. study: its id."""
    return f"train/{slug(study)}"


def _home(context: WorkerContext, study: Study, job: TrialJob) -> Home | None:
    workers = workers_of(context.objective)
    if workers is None:
        return None
    from tuning.worker_groups.ray_train import trained

    # After a resume, a trial of this number may come again with another configuration.
    digest = hashlib.blake2b(json.dumps(job.config, sort_keys=True).encode(), digest_size=4).hexdigest()
    return Home(context.directory.locate(train_folder(study.id)), f"{job.trial}-{digest}", workers, trained)


def _restored(directory: RunDirectory, job: TrialJob, checkpoint: str | None) -> SavedState | None:
    """Return the trial's last state: in Tune's own checkpoint after a lost worker, in the job's after a lost driver."""
    if path := checkpoint or (job.checkpoint and directory.path(job.checkpoint)):
        return read_state(directory, path)
    return None


Opened = tuple[WorkerContext, Mapping[str, Study]]
_OPEN: dict[tuple[str, str], Opened] = {}


def forget_run() -> None:
    """Keep nothing of spread studies and their customers any more: this process turns to something else."""
    _OPEN.clear()


def opened(run: WorkerRun) -> Opened:
    """Return the context and the studies of a run, opened once by this process and kept for its next trials."""
    key = (run.uri, run.term.folder)
    if key not in _OPEN:
        forget_run()
        directory = run.directory
        plan = read_spread(directory, run.term, run.spec)
        context = WorkerContext.open(directory, plan.run, plan.spec, kept_bytes=KEPT_BYTES)
        _OPEN[key] = context, {study.id: study for study in plan.studies}
    return _OPEN[key]


def last_fit(run: WorkerRun, job: FitJob, report: Listener) -> None:
    """Conclude a study in this process and record it."""
    context, _ = opened(run)
    place = groups_work_in(place_here(context.directory, job.ended.study, job.worker_group))
    with place, open_worker(context, run.timing.cold_start_s) as worker:
        conclude(worker, run.term, job.ended, report)


def conclude(worker: Worker, term: Term, ended: EndedStudy, report: Listener) -> None:
    """Choose a study's winner, fit and save its model, and write the study's record; not where a trial has crashed."""
    context, study = worker.context, ended.study
    if ended.crashed is not None:
        times = context.spec.definition.limits.crashes_before_quarantine
        record = quarantine(
            context, study, ended.records, what=ended.crashed, times=times, cause=DEATHS, error=ended.error
        )
    else:
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
    _write(context, term, study, record, report)


def _write(context: WorkerContext, term: Term, study: Study, record: StudyRecord, report: Listener) -> None:
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
