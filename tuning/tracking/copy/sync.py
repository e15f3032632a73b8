"""Complete the copy from the records: after an outage, after a crash, or into another store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tuning.errors import RunError
from tuning.records.ownership import newest_term
from tuning.records.parts import STUDIES, TRIALS, accepted, kind_of
from tuning.runs.plan_file import frozen_definition, read_plan
from tuning.storage.names import mask
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.copy.writer import Writer
from tuning.tracking.settings import CopyStatus, tracking_uri_of
from tuning.tracking.summary.summary import SUMMARY_FILE

PATIENCE_S = 60.0
FOREVER_S = 1e7


@dataclass(frozen=True, slots=True)
class SyncReport:
    """parts: how many were given. where: the store, secrets masked. complete: nothing is missing in MLflow."""

    parts: int
    where: str
    status: CopyStatus
    seconds: float

    @property
    def complete(self) -> bool:
        status = self.status
        return status.healthy and not (status.pending or status.models_pending or status.rejected)


def sync(
    directory: RunDirectory,
    tracking_uri: str | None,
    experiment: str,
    run: str,
    parts: Iterable[str],
    record_trials: str = "all",
    record_models: str = "auto",
    artifacts: str | None = None,
    patience: float = PATIENCE_S,
    progress: Callable[[CopyStatus], None] | None = None,
) -> SyncReport:
    """Write all parts that MLflow does not have yet. Doing it twice changes nothing.

    patience: seconds that a store may fail, with no success in between, before this gives up. progress: called about
    twice a second. For the other arguments see `Writer`, which this is, given all parts at once.
    """
    started = time.monotonic()
    names = list(parts)
    writer = Writer(directory, tracking_uri, experiment, run, record_trials, record_models, artifacts)
    writer.start()
    for name in names:
        writer.add(name)
    if directory.exists(SUMMARY_FILE):
        writer.add(SUMMARY_FILE)
    status = writer.close(FOREVER_S, progress, patience)
    return SyncReport(
        parts=len(names), where=mask(writer.settings.tracking_uri), status=status, seconds=time.monotonic() - started
    )


def sync_run(
    run_dir: str,
    tracking_uri: str | None = None,
    experiment: str | None = None,
    record_trials: str | None = None,
    record_models: str | None = None,
    patience: float = PATIENCE_S,
    progress: Callable[[CopyStatus], None] | None = None,
) -> SyncReport:
    """`sync` of the run in a folder; what is None is as the run's definition says."""
    directory = RunDirectory(run_dir)
    term = newest_term(directory)
    if term is None:
        raise RunError(f"{directory.shown} is not a run directory: no run has begun there.")
    definition = frozen_definition(directory)
    options = definition.mlflow
    settings, _, _ = read_plan(directory, term)
    return sync(
        directory,
        tracking_uri_of(directory, tracking_uri or options.tracking_uri),
        experiment or options.experiment or definition.name,
        settings.run,
        [part for part in accepted(directory, term) if kind_of(part) in (TRIALS, STUDIES)],
        record_trials or options.record_trials,
        record_models or options.record_models,
        patience=patience,
        progress=progress,
    )
