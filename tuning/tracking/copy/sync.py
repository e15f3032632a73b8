"""The copy of a run's records: once when the run has ended, or following it while it goes on.

`tuning mlflow sync` is this. A search starts it as a child process of its own (`live`), because MLflow's and Alembic's
imports, logging set-up, environment variables and calls of seconds have no place in the process that drives a search,
and because a call that hangs can be ended only with its process.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tuning.basics.environment import environment_set
from tuning.basics.timing import USUAL, Timing
from tuning.records.ownership import Term, begun_term
from tuning.storage.names import mask
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.copy.copier import Copier
from tuning.tracking.copy.loop import CopyLoop
from tuning.tracking.copy.parts import FollowedRun, GivenParts, Parts, parts_of
from tuning.tracking.selection import Selection, most_models
from tuning.tracking.settings import (
    REQUEST_TIMEOUT_S,
    CopyStatus,
    TrackingSettings,
    settings_of,
)
from tuning.tracking.stores.opening import open_store

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class SyncReport:
    """parts: how many there were. where: the store, secrets masked. abandoned: the run was followed, and its process
    died before the run had ended. complete: nothing is missing in MLflow.
    """

    parts: int
    where: str
    status: CopyStatus
    seconds: float
    abandoned: bool = False

    @property
    def complete(self) -> bool:
        status = self.status
        missing = status.pending or status.models_pending or status.rejected or self.abandoned
        return status.healthy and not missing


def _no_progress(_: CopyStatus) -> None:
    """Nobody is told of the progress."""


def sync(
    settings: TrackingSettings,
    parts: Iterable[str],
    *,
    patience: float = PATIENCE_S,
    progress: Callable[[CopyStatus], None] = _no_progress,
) -> SyncReport:
    """Write all of some parts that MLflow does not have yet. Doing it twice changes nothing.

    patience: seconds that a store may fail, with no success in between, before this gives up. progress: called after
    every change.
    """
    return _copy(settings, GivenParts(parts), patience, progress)


def follow(
    settings: TrackingSettings,
    term: Term,
    *,
    ending: threading.Event | None = None,
    patience: float = PATIENCE_S,
    progress: Callable[[CopyStatus], None] = _no_progress,
    nice: bool = False,
    timing: Timing = USUAL,
) -> SyncReport:
    """Write the parts of a term as they come, until its owner has let go of the run and nothing is left.

    While the owner works, a store that fails is waited for without end; `patience` counts afterwards. When the owner
    dies, this ends at once: whoever resumes the run copies the rest. ending: set from outside when the run has ended.
    """
    parts = FollowedRun(RunDirectory(settings.directory), term, ending, timing.dead_after_s)
    return _copy(settings, parts, patience, progress, nice, timing)


def sync_run(
    run_dir: str,
    *,
    patience: float = PATIENCE_S,
    progress: Callable[[CopyStatus], None] = _no_progress,
    **changes: str | None,
) -> SyncReport:
    """`sync` of the run in a folder. changes: as `settings_of` takes them."""
    directory = RunDirectory(run_dir)
    term = begun_term(directory)
    parts = parts_of(directory, term, summary=True)
    return sync(settings_of(directory, term, **changes), parts, patience=patience, progress=progress)


def _copy(
    settings: TrackingSettings,
    parts: Parts,
    patience: float,
    progress: Callable[[CopyStatus], None],
    nice: bool = False,
    timing: Timing = USUAL,
) -> SyncReport:
    started = time.monotonic()
    search = settings.search
    copier = Copier(
        RunDirectory(settings.directory),
        search,
        Selection.parse(settings.record_trials),
        lambda: open_store(settings.tracking_uri, search, settings.artifacts),
        most_models(settings.record_models),
    )
    with quiet_mlflow():
        loop = CopyLoop(
            copier, parts, settings.tracking_uri, patience=patience, timing=timing, progress=progress, nice=nice
        )
        status = loop.run()
    return SyncReport(
        parts=status.copied + status.pending,
        where=mask(settings.tracking_uri),
        status=status,
        seconds=time.monotonic() - started,
        abandoned=parts.abandoned and not parts.complete,
    )


@contextlib.contextmanager
def quiet_mlflow() -> Iterator[None]:
    """Short waits, our own retries, no progress bars; a user's own setting of a timeout stays."""
    wanted = {
        "MLFLOW_HTTP_REQUEST_TIMEOUT": os.environ.get("MLFLOW_HTTP_REQUEST_TIMEOUT", str(REQUEST_TIMEOUT_S)),
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
        "MLFLOW_LOGGING_LEVEL": "CRITICAL",
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    }
    with environment_set(wanted):
        yield
