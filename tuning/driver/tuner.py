"""A run's `tune.Tuner` and the queue that it works through."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from tuning.definition.options import Resources
from tuning.execution.jobs import BatchJob, placement_group
from tuning.execution.reports import Listener, PartWriter
from tuning.execution.run_queue import RunQueue
from tuning.execution.spread.open_studies import OpenStudies
from tuning.execution.spread.running import SpreadRun
from tuning.execution.study_record import abandoned
from tuning.execution.worker import WorkerContext, WorkerRun
from tuning.notes import Note
from tuning.planning.capacity import alive_machines
from tuning.planning.populations import helpers_with_room
from tuning.records.parts import POOL_BATCH
from tuning.runs.begin import OwnedRun
from tuning.runs.progress import WorkerError
from tuning.runs.resume import recorded
from tuning.storage.names import slug

if TYPE_CHECKING:
    from ray.tune import Callback, Stopper, Tuner

TUNE_SETTINGS = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # CSV, JSON and TensorBoard files per batch tell nobody anything
    "TUNE_GLOBAL_CHECKPOINT_S": "300",  # the records are the truth; Ray's own snapshot is a convenience
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # tuning/driver/signals.py has it
    "TUNE_WARN_THRESHOLD_S": "30",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",  # a worker that died is started again; what it means is in the records
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
}
_SET: dict[str, str] = {}  # variables that a run of this process has set, and not the user


def run_queue(owned: OwnedRun, spread: SpreadRun, studies: OpenStudies | None = None) -> RunQueue:
    """Return the queue of batches and trials that a Tuner works through. Workers skip trials that are recorded already.

    studies: the spread studies, opened; None without any.
    """
    plan, needs = owned.plan, owned.plan.resources
    helpers = helpers_with_room(plan.helpers, needs, alive_machines())
    return RunQueue(
        plan.slots,
        spread.capacity,
        [BatchJob.from_resources(batch, need, helpers) for batch, need in enumerate(needs)],
        studies,
        at_once=plan.spread_at_once(max(plan.slots, spread.capacity.cpus)),
        restarts=plan.spec.definition.limits.crashes_before_quarantine - 1,
        no_place=partial(record_no_place, owned, spread.report),
        pool=BatchJob.from_resources(POOL_BATCH, Resources()) if owned.pool_is_due else None,
        pool_is_due=lambda: owned.pool_is_due,
    )


def record_no_place(owned: OwnedRun, report: Listener, batch: int, reason: Note) -> None:
    """Record what is left of a batch without room on any machine, with that as its reason; a resume tries it again.

    report: receives what is written. Nothing is written of the pool.
    """
    if batch == POOL_BATCH:
        report(WorkerError(str(reason)))
        return
    context = WorkerContext.open(owned.directory, owned.run, owned.plan.spec)
    known, finished = recorded(owned.directory, owned.term, batch)
    left = [study for study in owned.plan.studies.take(owned.plan.batches[batch]) if study.id not in finished]
    budgets = {study.id: study.budget for study in left}
    writer = PartWriter(owned.directory, owned.term, batch, report, budgets=budgets)
    writer.add(abandoned(context, study, reason, records=known.get(study.id, ())) for study in left)
    writer.flush()


def build_tuner(
    owned: OwnedRun,
    queue: RunQueue,
    attempt: int = 0,
    stop: Stopper | None = None,
    callbacks: Sequence[Callback] = (),
) -> Tuner:
    """Return the Tuner of a run: it works through all batches, and all trials of spread studies.

    attempt: its number among the Tuners of the run. stop: ends it. callbacks: those of a Tuner that a caller fits.
    `run()` hands its callbacks over by an environment variable (`tuning.execution.bridge`).
    """
    from ray import tune

    from tuning.execution.bridge import RunScheduler, RunSearch, run_trainable

    slots = owned.plan.slots
    tune_settings(slots)
    name = f"run_{slug(owned.run).replace('-', '_')}"
    trainable = run_trainable(WorkerRun.from_owned(owned, owned.timing.of_run(slots, len(owned.plan.studies))), name)
    return tune.Tuner(
        tune.with_resources(trainable, placement_group),
        tune_config=tune.TuneConfig(reuse_actors=True, scheduler=RunScheduler(queue), search_alg=RunSearch(queue)),
        run_config=tune.RunConfig(
            name=f"{owned.term.folder}-{attempt}",
            storage_path=owned.directory.locate("tune"),
            callbacks=list(callbacks) or None,
            stop=stop,
            verbose=0,
            progress_reporter=tune.CLIReporter(),  # silent by that; a notebook's clears what the cell has shown
        ),
    )


def tune_settings(slots: int) -> None:
    """Set Tune's environment variables, also after another run. What the user has set stays."""
    for name, value in {**TUNE_SETTINGS, "TUNE_MAX_PENDING_TRIALS_PG": str(max(2, slots))}.items():
        if os.environ.get(name) == _SET.get(name):
            os.environ[name] = _SET[name] = value
    # Tune warns of each batch that it has no result files. There are to be none, and failures come back as exceptions.
    logging.getLogger("ray.tune").setLevel(logging.ERROR)
    # Its list of trials that ended their workers says less than the leaderboard's reasons.
    logging.getLogger("ray.tune.tune").setLevel(logging.CRITICAL)
