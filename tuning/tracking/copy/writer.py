"""The live writer: hands part names to a child process. Never blocks, never raises."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import IO

from tuning.errors import StorageError
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.selection import Selection, most_models
from tuning.tracking.settings import (
    CopyStatus,
    TrackingSettings,
    default_artifacts,
    default_tracking_uri,
    masked,
    token_of,
)
from tuning.tracking.summary.summary import SUMMARY_FILE, Summary, save_summary

RESTARTS = 5  # of the child, without any part copied in between; what is left then is for `tuning mlflow sync`
EXIT_S = 0.5  # of a closing time that the child keeps for its end


class Writer:
    """Copies record parts to MLflow in the background.

    directory: the run directory. tracking_uri: any URI that MLflow knows; None is
    `sqlite:///<run directory>/mlflow.db`. experiment: the definition's name. run: the search's id, unique
    in its experiment (run ids are derived from both). record_trials: "all", "top:K" (the
    best K of each study, written when it ends) or "none" (parents only). record_models:
    "all" winners as MLflow models, "none", or "auto": all, up to a hundred customers. artifacts: where a database's
    experiment keeps its artifacts; default: `mlruns` beside a SQLite file, else in the run directory.

    Raises `DefinitionError` for a wrong `record_trials`, `PlanError` for a remote directory without a
    tracking_uri. After that no method raises.
    """

    def __init__(
        self,
        directory: RunDirectory,
        tracking_uri: str | None,
        experiment: str,
        run: str,
        record_trials: str = "all",
        record_models: str = "auto",
        artifacts: str | None = None,
    ) -> None:
        Selection.parse(record_trials)
        most_models(record_models)
        uri = tracking_uri or default_tracking_uri(directory)
        self.settings = TrackingSettings(
            directory=directory.uri,
            tracking_uri=uri,
            experiment=experiment,
            run=run,
            record_trials=record_trials,
            record_models=record_models,
            artifacts=artifacts or default_artifacts(directory, uri),
            token=token_of(directory),
        )
        self.directory = directory
        self._lock = threading.Condition()
        self._known: dict[str, None] = {}  # parts in the order of arrival
        self._done: set[str] = set()
        self._outbox: list[dict[str, object]] = []
        self._status = CopyStatus()
        self._earlier = CopyStatus()  # what children that died had written
        self._child: subprocess.Popen[str] | None = None
        self._closing = self._killed = self._hurried = False
        self._ends = 0.0  # by the monotonic clock, once closing
        self._patience = math.inf
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the child process; it prepares the database at once. Calling it again does nothing."""
        with self._lock:
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._supervise, name="mlflow-writer", daemon=True)
                self._thread.start()

    def add(self, part: str) -> None:
        """Queue a record part by its name in the run directory. Returns at once; a known part is no news."""
        with self._lock:
            if part not in self._known and not self._closing:
                self._known[part] = None
                self._send({"add": part})

    def hurry(self) -> None:
        """Copy without rests from now on: the end is near, and what is left then somebody waits for."""
        with self._lock:
            if not self._hurried:
                self._hurried = True
                self._send({"hurry": True})

    def summary(self, summary: Summary, contents: Mapping[str, bytes] | None = None) -> None:
        """Make or replace the search's summary run when the writer is closed.

        contents: artifacts that are not files of the run directory yet (name in MLflow → content).
        """
        try:
            save_summary(self.directory, summary, contents or {})
        except (StorageError, OSError, ValueError, TypeError) as error:
            with self._lock:
                self._status = replace(self._status, error=masked(str(error), self.settings.tracking_uri))
            return
        with self._lock:
            self._known[SUMMARY_FILE] = None
            self._done.discard(SUMMARY_FILE)
            self._send({"add": SUMMARY_FILE})

    def status(self) -> CopyStatus:
        """How the copy stands now."""
        with self._lock:
            return replace(
                self._status,
                trials=self._status.trials + self._earlier.trials,
                studies=self._status.studies + self._earlier.studies,
                models=self._status.models + self._earlier.models,
                rejected=self._status.rejected + self._earlier.rejected,
                pending=len(self._known) - len(self._done),
            )

    def close(
        self,
        timeout: float = 30.0,
        progress: Callable[[CopyStatus], None] | None = None,
        patience: float = math.inf,
    ) -> CopyStatus:
        """Copy what is queued, for at most `timeout` seconds, and end the child. What is left stays pending.

        progress: called about twice a second meanwhile. patience: seconds without any success after which to give up.
        """
        ends = time.monotonic() + timeout
        with self._lock:
            if not self._closing:
                self._closing, self._ends, self._patience = True, ends, patience
                self._send(self._farewell())
            thread = self._thread
        while thread is not None and thread.is_alive() and time.monotonic() < ends:
            thread.join(min(0.5, max(0.0, ends - time.monotonic())))
            if progress is not None:
                progress(self.status())
        self._kill()
        if thread is not None:
            thread.join(1.0)
        return self.status()

    def __enter__(self) -> Writer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, command: dict[str, object]) -> None:
        self._outbox.append(command)
        self._lock.notify_all()

    def _seconds_left(self) -> float:
        return max(0.0, self._ends - time.monotonic() - EXIT_S)

    def _farewell(self) -> dict[str, object]:
        limits = {"close": self._seconds_left(), "patience": self._patience}
        return {name: value for name, value in limits.items() if math.isfinite(value)}

    def _supervise(self) -> None:
        """Start the child, and start it again when it dies before it was told to close."""
        failures = 0
        while failures <= RESTARTS:
            before = len(self._done)
            try:
                with tempfile.TemporaryFile("w+") as complaints:
                    code = self._live(complaints)
                    tail = "" if code == 0 else _tail(complaints)
            except OSError as error:  # no process, no memory, no temporary file
                code, tail = -1, str(error)
            with self._lock:
                if code == 0 or self._killed or (self._closing and self._seconds_left() == 0.0):
                    return
                failures = 1 if len(self._done) > before else failures + 1
                message = f"The MLflow writer ended with exit code {code}. {tail}".strip()
                self._earlier = replace(
                    self._earlier,
                    trials=self._earlier.trials + self._status.trials,
                    studies=self._earlier.studies + self._status.studies,
                    models=self._earlier.models + self._status.models,
                )
                self._status = CopyStatus(error=masked(message, self.settings.tracking_uri), healthy=False)
                self._lock.wait_for(lambda: self._killed, timeout=min(0.25 * 2**failures, 10.0))

    def _live(self, complaints: IO[str]) -> int:
        """One child from start to end; its exit code."""
        with self._lock:
            if self._killed:
                return 0
            child = self._child = subprocess.Popen(
                [sys.executable, "-m", "tuning.tracking.copy.process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                env=_environment(),
                process_group=0,  # Ctrl-C is for the driver, which then closes the child in order
            )
            self._outbox = [{"add": part} for part in self._known if part not in self._done]
            if self._hurried:
                self._outbox.append({"hurry": True})
            if self._closing:
                self._outbox.append(self._farewell())
        feeder = threading.Thread(target=self._feed, args=(child,), name="mlflow-writer-feed", daemon=True)
        feeder.start()
        assert child.stdout is not None
        with contextlib.suppress(ValueError, OSError):
            for line in child.stdout:
                self._hear(line)
        code = child.wait()
        with self._lock:
            self._lock.notify_all()
        return code

    def _feed(self, child: subprocess.Popen[str]) -> None:
        """Write commands to the child as they come; a child that does not read blocks only this thread."""
        assert child.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            child.stdin.write(self.settings.to_json() + "\n")
            child.stdin.flush()
            while child.poll() is None:
                with self._lock:
                    self._lock.wait_for(lambda: self._outbox or child.poll() is not None)
                    if child.poll() is not None:
                        return
                    commands, self._outbox = self._outbox, []
                child.stdin.write("".join(json.dumps(command) + "\n" for command in commands))
                child.stdin.flush()

    def _hear(self, line: str) -> None:
        report = json.loads(line)
        with self._lock:
            self._done.update(report.pop("done"))
            self._status = CopyStatus(**report)

    def _kill(self) -> None:
        with self._lock:
            self._killed = True
            self._lock.notify_all()
            child = self._child
        if child is not None and child.poll() is None:
            with contextlib.suppress(OSError):
                child.kill()


def _environment() -> dict[str, str]:
    """The child imports what this process imports: the same paths, in the same order."""
    paths = [path or os.getcwd() for path in sys.path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}


def _tail(complaints: IO[str]) -> str:
    complaints.seek(0)
    lines = [line.strip() for line in complaints.read().splitlines() if line.strip()]
    return lines[-1] if lines else ""
