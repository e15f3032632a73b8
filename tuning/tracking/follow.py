"""The copy of a run's records: once, or as long as the run goes on; what fails is waited for.

`tuning mlflow sync` is this. A search starts it as a child process of its own (`child`), because MLflow's and Alembic's
imports, logging set-up, environment variables and calls of seconds have no place in the process that drives a search,
and because a call that hangs can be ended only with its process.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tuning.basics.environment import environment_set
from tuning.basics.timing import USUAL, Timing
from tuning.errors import StorageError
from tuning.records.lease import Heartbeat, last_heartbeat
from tuning.records.ownership import Term
from tuning.records.parts import POOL, STUDIES, TRIALS, accepted, kind_of, written
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.copier import Copier
from tuning.tracking.settings import REQUEST_TIMEOUT_S, CopyStatus, Selection, TrackingSettings, masked
from tuning.tracking.stores import open_store
from tuning.tracking.summary import SUMMARY_FILE

PATIENCE_S = 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 5.0


class RunParts:
    """The parts of a term, to which its owner may still add: one listing of its folder each time.

    Attributes:
        ended: Set from outside when what is there now is all that is to be copied, such as by a process that knows of
            the run's end before the lease is released.
        complete: True when no part will be added to those that `look` gave last.
    """

    def __init__(
        self, directory: RunDirectory, term: Term, ended: threading.Event, dead_after_s: float = USUAL.dead_after_s
    ) -> None:
        self.directory, self.term, self.ended = directory, term, ended
        self.complete = False
        self._dead_after_s = dead_after_s  # an owner whose lease stood still for so long is dead
        self._beat = Heartbeat()
        self._moved = time.monotonic()  # when the owner's counter was last seen to have changed

    @property
    def abandoned(self) -> bool:
        """True when the run's owner has died: whoever resumes the run copies the rest."""
        if self.complete or self._beat.released or not self._looks_dead:
            return False
        try:
            self._look_at_owner()  # it may have counted or let go since the last look: a batch can take long
        except StorageError:
            return self.term.owner.is_dead
        return not self._beat.released and self._looks_dead

    @property
    def _looks_dead(self) -> bool:
        return self.term.owner.is_dead or time.monotonic() - self._moved >= self._dead_after_s

    def look(self) -> list[str]:
        """Return the names of all parts that there are now. Raises `StorageError`."""
        ended = self.ended.is_set()
        self._look_at_owner()  # first: what it wrote before it let go is then in the listing
        self.complete = ended or self._beat.released
        return parts_of(self.directory, self.term, summary=self.complete)

    def wait(self, seconds: float) -> None:
        """Let time pass, less when the run ends in the meantime."""
        if self.complete:
            time.sleep(seconds)
        else:
            self.ended.wait(seconds)

    def _look_at_owner(self) -> None:
        beat = last_heartbeat(self.directory, self.term)
        if beat.counter != self._beat.counter:
            self._moved = time.monotonic()
        self._beat = beat


def parts_of(directory: RunDirectory, term: Term, *, summary: bool) -> list[str]:
    """Return the names of the parts that MLflow gets, in the order in which they were written.

    summary: with the one that sums up the run, when it is there.
    """
    names = [part for part in accepted(directory, term) if kind_of(part) in (POOL, TRIALS, STUDIES)]
    names.sort(key=written)  # trials just before their studies: else all of these would wait in memory for those
    if summary and directory.exists(SUMMARY_FILE):
        names.append(SUMMARY_FILE)
    return names


class CopyLoop:
    """Copies parts until there are no more; when something fails, says so, waits a little longer each time, goes on.

    Doing it twice changes nothing. While a run goes on, a store that fails is waited for without end. When the run's
    owner dies, this ends at once: whoever resumes the run copies the rest.

    Args:
        settings: Of the copy.
        parts: What is copied.
        patience: Seconds that a store may fail, with no success in between, before this gives up.
        progress: Called after every change.
        timing: Of the looks for parts.
    """

    def __init__(
        self,
        settings: TrackingSettings,
        parts: RunParts,
        *,
        patience: float = PATIENCE_S,
        progress: Callable[[CopyStatus], None] = lambda _: None,
        timing: Timing = USUAL,
    ) -> None:
        search = settings.search
        self.copier = Copier(
            RunDirectory(settings.directory),
            search,
            Selection.parse(settings.record_trials),
            lambda: open_store(settings.tracking_uri, search, settings.artifacts),
            settings.models,
        )
        self.parts, self.status = parts, CopyStatus()
        self._tracking_uri, self._patience, self._progress = settings.tracking_uri, patience, progress
        self._look_s = timing.mlflow_look_s
        self._failing_since: float | None = None
        self._pause = 0.0

    def run(self) -> CopyStatus:
        """Return how the copy stands at its end. Never raises: what fails is in the status."""
        with quiet_mlflow():
            while not self._step():
                pass
        return replace(self.status, abandoned=self.parts.abandoned)

    def _step(self) -> bool:
        """Copy what there is, and wait for the next look; whether this was the last step."""
        works = self._attempt(self._copy)
        if self.parts.abandoned:
            return True
        if self.parts.complete:
            works = works and self._attempt(self._finish)
            if works or self._impatient():
                return True
        copied = time.monotonic()
        works = works and self._attempt(self._log_models)
        pause = self._look_s if works else self._pause * random.uniform(0.75, 1.25)
        self.parts.wait(max(0.0, pause - (time.monotonic() - copied)))
        return False

    def _copy(self) -> None:
        for part in self.parts.look():
            self.copier.add(part)
        self.copier.store()  # also when there is nothing yet: making a database takes seconds
        while not (self.copier.idle or self.parts.abandoned):
            self.copier.work()
            self._report(None)

    def _log_models(self) -> None:
        """Log winners until the next look, and load what logs them before there is one."""
        if not self.parts.ended.is_set():
            self.copier.load_ahead()
        until = time.monotonic() + self._look_s
        while not self.parts.ended.is_set() and time.monotonic() < until and self.copier.log_model():
            self._report(None)

    def _finish(self) -> None:
        self.copier.finish()
        self._report(None)
        while not self.parts.abandoned and self.copier.log_model():
            self._report(None)

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Run an action, and return whether it works; a failure is reported and answered with a pause."""
        before = self._copied()
        try:
            action()
        except Exception as error:  # whatever MLflow, a database driver or the storage raises is an outage
            if self._failing_since is None or self._copied() != before:
                self._failing_since, self._pause = time.monotonic(), 0.0
            self._pause = min(max(FIRST_PAUSE_S, 2 * self._pause), LONGEST_PAUSE_S)
            self._report(error)
            return False
        self._failing_since, self._pause = None, 0.0
        self._report(None)
        return True

    def _impatient(self) -> bool:
        return self._failing_since is not None and time.monotonic() - self._failing_since >= self._patience

    def _copied(self) -> int:
        status = self.copier.status
        return status.trials + status.studies + status.models + status.copied

    def _report(self, error: Exception | None) -> None:
        status = self.copier.status
        if error is not None:
            cause = getattr(error, "orig", None) or error  # of a database what its driver said, without the statement
            status = replace(status, error=f"{type(cause).__name__}: {cause}", healthy=False)
        if status.error:
            status = replace(status, error=masked(status.error, self._tracking_uri))
        if status != self.status:
            self.status = status
            self._progress(status)


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
