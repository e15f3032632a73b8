"""The child process that copies: `python -m tuning.tracking.copy.process`, driven by lines on its standard input.

A process of its own, because MLflow's and Alembic's imports, logging set-up, environment variables and
seconds-long calls have no place in the process that drives a search, and because a call that hangs can be
ended only with its process. When the input closes, the driver is gone and so is this process.

Lines in: settings, then {"add": part}, {"hurry": true} and {"close": seconds}.
Lines out: {"done": [parts], "trials": n, …} after every change.
"""

from __future__ import annotations

import gc
import json
import math
import os
import queue
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from tuning.tracking.settings import TrackingSettings, masked

REQUEST_TIMEOUT_S = 15
NICENESS = 10  # when all cores are busy with fits, the copy waits
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 5.0
SETTLE_AFTER_S = 2 * REQUEST_TIMEOUT_S
REST = 20  # times as long as a batch took, before the next one: small batches cost several times as much per run
LONGEST_REST_S = 2.0
PARTS_AT_ONCE = 20  # are a batch, however long the rest still is


def main() -> None:
    """Read settings, then copy until told to close."""
    reports = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # MLflow prints to standard output; ours is a protocol
    commands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    settings = TrackingSettings.from_json(sys.stdin.readline())
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    os.nice(NICENESS)
    # Batches are tens of thousands of tuples without a cycle: looking for cycles as often as usual is 5 % of the time.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    _quieten()
    CopyLoop(settings, commands, reports).run()
    reports.flush()
    os._exit(0)  # a thread that still waits for a hanging server must not keep the process


def _listen(commands: queue.SimpleQueue[dict[str, Any]]) -> None:
    closing = False
    for line in sys.stdin:
        command = json.loads(line)
        closing = closing or "close" in command
        commands.put(command)
    if not closing:
        os._exit(3)


def _quieten() -> None:
    """Short waits, our own retries, no progress bars; a user's own setting of a timeout stays."""
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", str(REQUEST_TIMEOUT_S))
    os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"
    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
    os.environ["MLFLOW_LOGGING_LEVEL"] = "CRITICAL"
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"


class CopyLoop:
    """Copy what arrives; when something fails, say so, wait a little longer each time, and go on."""

    def __init__(
        self, settings: TrackingSettings, commands: queue.SimpleQueue[dict[str, Any]], reports: TextIO
    ) -> None:
        from tuning.storage.run_directory import RunDirectory
        from tuning.tracking.copy.copier import Copier
        from tuning.tracking.identity import Search
        from tuning.tracking.selection import Selection, most_models
        from tuning.tracking.stores.store import open_store

        search = Search(settings.experiment, settings.run, settings.token)
        self.settings = settings
        self.commands = commands
        self.reports = reports
        self.copier = Copier(
            RunDirectory(settings.directory),
            search,
            Selection.parse(settings.record_trials),
            lambda: open_store(settings.tracking_uri, search, settings.artifacts),
            most_models(settings.record_models),
        )
        self.deadline: float | None = None
        self.patience = math.inf  # seconds of failures without a success after which closing gives up
        self.failing_since: float | None = None
        self.reported: set[str] = set()
        self.prepared = False
        self.pause = self.retry_at = self.rest_until = 0.0
        self.settle_at: float | None = None
        self.hurried = False

    def run(self) -> None:
        while True:
            for command in self._take(self._wait()):
                self._obey(command)
            if self.deadline is None and time.monotonic() < self.retry_at:
                continue
            failure = self._attempt(self._step)
            if self.deadline is None:
                continue
            if failure is None:
                failure = self._attempt(self._finish)
            if failure is None or self.copier.stuck or time.monotonic() >= self.deadline or self._impatient():
                self._report(failure)
                return

    def _finish(self) -> None:
        self.copier.finish()
        self._report(None)
        while self.copier.models_pending and (self.deadline is None or time.monotonic() < self.deadline):
            self.copier.log_model()
            self._report(None)

    def _step(self) -> None:
        if not self.prepared:
            os.nice(self.copier.store().niceness)
            self.prepared = True
            self._report(None)
        while not self.copier.idle and self._rested():
            started = time.monotonic()
            self.copier.work()
            now = time.monotonic()
            self.rest_until = now + min(REST * (now - started), LONGEST_REST_S)
            self._report(None)
            for command in self._take(0):
                self._obey(command)
        if self.settle_at is not None and time.monotonic() >= self.settle_at:
            self.copier.store().settle()
            self.settle_at = None

    def _attempt(self, action: Callable[[], None]) -> Exception | None:
        """Run an action; its failure is reported and answered with a pause, never raised."""
        before = self._copied()
        try:
            action()
        except Exception as error:  # whatever MLflow, a database driver or the storage raises is an outage
            now = time.monotonic()
            if self.failing_since is None or self._copied() != before:
                self.failing_since, self.pause = now, 0.0
            self.pause = min(max(FIRST_PAUSE_S, 2 * self.pause), LONGEST_PAUSE_S)
            self.retry_at = now + self.pause * random.uniform(0.75, 1.25)
            self.settle_at = now + SETTLE_AFTER_S
            self._report(error)
            return error
        self.pause = self.retry_at = 0.0
        self.failing_since = None
        return None

    def _rested(self) -> bool:
        if self.hurried or self.deadline is not None or self.failing_since is not None:
            return True
        if self.copier.queued >= PARTS_AT_ONCE:
            return True
        return time.monotonic() >= self.rest_until

    def _impatient(self) -> bool:
        return self.failing_since is not None and time.monotonic() - self.failing_since >= self.patience

    def _copied(self) -> int:
        progress = self.copier.progress
        return progress.trials + progress.studies + progress.models + len(self.copier.done)

    def _wait(self) -> float | None:
        """Seconds until there is something to do without a new command; None when there is nothing."""
        now = time.monotonic()
        if self.retry_at:
            until = self.retry_at if self.deadline is None else min(self.retry_at, self.deadline)
            return max(0.0, until - now)
        if not self.prepared or self.deadline is not None:
            return 0.0
        moments = [] if self.settle_at is None else [self.settle_at]
        if not self.copier.idle:
            moments.append(now if self._rested() else self.rest_until)
        return max(0.0, min(moments) - now) if moments else None

    def _take(self, wait: float | None) -> Iterable[dict[str, Any]]:
        """All commands that are here; waits for the first one up to `wait` seconds."""
        taken = []
        try:
            taken.append(self.commands.get(wait != 0, wait))
            while True:
                taken.append(self.commands.get_nowait())
        except queue.Empty:
            pass
        return taken

    def _obey(self, command: dict[str, Any]) -> None:
        if "add" in command:
            self.copier.add(command["add"])
            self.reported.discard(command["add"])
        self.hurried = self.hurried or "hurry" in command
        if "close" in command:
            self.deadline = time.monotonic() + float(command["close"])
            self.patience = float(command.get("patience", math.inf))

    def _report(self, error: Exception | None) -> None:
        progress = self.copier.progress
        message = progress.error if error is None else _said_by(error)
        done = self.copier.done - self.reported
        self.reported |= done
        line = {
            "done": sorted(done),
            "trials": progress.trials,
            "studies": progress.studies,
            "models": progress.models,
            "models_pending": self.copier.models_pending,
            "rejected": progress.rejected,
            "error": masked(message, self.settings.tracking_uri) if message else None,
            "healthy": error is None,
        }
        self.reports.write(json.dumps(line) + "\n")
        self.reports.flush()


def _said_by(error: Exception) -> str:
    """An error as text; of a database's only what its driver said, not the statement with its thousand values."""
    cause = getattr(error, "orig", None) or error
    return f"{type(cause).__name__}: {cause}"


if __name__ == "__main__":
    main()
