"""The copy beside a search: its driver starts `tuning mlflow sync RUN --follow`, and waits for it at the end."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from types import TracebackType
from typing import IO

from tuning.basics.environment import import_environment
from tuning.errors import StorageError
from tuning.records.ownership import Term
from tuning.storage.names import mask
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.copy.parts import parts_of
from tuning.tracking.settings import CopyStatus, TrackingSettings, masked, without_secrets

HANDED = "TUNING_MLFLOW_COPY"  # a variable, because a command line is seen by everybody on the machine
RESTARTS = 5  # of the child, without any run copied in between; what is left then is for `tuning mlflow sync`


class LiveCopy:
    """Copies the records of a run to MLflow while it goes on, in a child process. No method raises.

    The child follows the run directory and needs nothing from here: it ends by itself when this process dies. When it
    dies before its time it is started again.

    term: the owner's, which this process is. patience: seconds that a store may fail, once the run has ended.
    """

    def __init__(self, settings: TrackingSettings, term: Term, patience: float = 10.0) -> None:
        self.settings = settings
        self.term = term
        self.patience = patience
        self._lock = threading.Condition()
        self._status = CopyStatus()
        self._child: subprocess.Popen[str] | None = None
        self._closing = self._killed = self._ended = False
        self._thread = threading.Thread(target=self._supervise, name="mlflow-copy", daemon=True)

    def start(self) -> None:
        """Start the child process; it prepares the database at once."""
        self._thread.start()

    @property
    def status(self) -> CopyStatus:
        """How the copy stands, as the child reported it last."""
        with self._lock:
            return self._status

    def close(self, timeout: float = 30.0) -> CopyStatus:
        """The run has ended: wait for what is left of the copy, at most `timeout` seconds, and end the child."""
        with self._lock:
            self._closing = True
            self._signal_end()
            self._lock.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout)
        with self._lock:
            self._killed = True
            if self._child is not None:
                self._child.kill()
        if self._thread.ident is not None:
            self._thread.join(1.0)
        return self._status if self._ended else self._status_by_records()

    def __enter__(self) -> LiveCopy:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _status_by_records(self) -> CopyStatus:
        """The status when the child did not come to its own end, and so has not seen everything."""
        with contextlib.suppress(StorageError):
            parts = parts_of(RunDirectory(self.settings.directory), self.term, summary=True)
            return replace(self._status, pending=max(0, len(parts) - self._status.copied))
        return self._status

    def _supervise(self) -> None:
        """Start the child, and start it again when it ends before it has copied everything that it should."""
        failures = copied = 0
        while failures <= RESTARTS:
            try:
                with tempfile.TemporaryFile("w+") as errors:
                    code, why = self._run_child(errors)
                    if output := without_secrets(_text(errors), self.settings.tracking_uri):
                        logging.getLogger("mlflow").warning("%s", output)  # for the run's log.txt
            except OSError as error:  # no process, no memory, no temporary file
                code, why = -1, str(error)
            with self._lock:
                if self._ended or self._killed:
                    return
                failures = 1 if self._status.copied > copied else failures + 1
                copied = max(copied, self._status.copied)
                message = f"The process that copies to MLflow ended with exit code {code}. {why}".strip()
                error_text = masked(message, self.settings.tracking_uri)
                self._status = replace(self._status, error=error_text, healthy=False)
                self._lock.wait_for(lambda: self._closing, timeout=min(0.25 * 2**failures, 10.0))

    def _run_child(self, errors: IO[str]) -> tuple[int, str]:
        """One child from start to end; its exit code, and the error that it has told."""
        with self._lock:
            if self._killed:
                return 0, ""
            self._child = child = self._start_child(errors)
            self._signal_end()
        assert child.stdout is not None
        why = ""
        with contextlib.suppress(ValueError, OSError):
            for line in child.stdout:
                report = json.loads(line)
                if "status" not in report:
                    why = str(report.get("reason", ""))
                    continue
                with self._lock:
                    self._status = CopyStatus(**report["status"])
                    # Who calls this process dead has not seen its lease for a while, and is started again.
                    self._ended = "complete" in report and not report["abandoned"]
        return child.wait(), why

    def _signal_end(self) -> None:
        """Send the child the signal that the run has ended, once it has."""
        if self._closing and self._child is not None:
            self._child.terminate()

    def _start_child(self, errors: IO[str]) -> subprocess.Popen[str]:
        shown = mask(self.settings.directory)
        command = [sys.executable, "-m", "tuning.cli", "mlflow", "sync", shown, "--follow"]
        command += ["--patience", str(self.patience), "--output", "json"]
        # A signal that says that the run has ended must not end a child that does not listen yet.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            return subprocess.Popen(  # noqa: S603  # our own interpreter and our own words
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self._environment(),
                process_group=0,  # Ctrl-C is for the driver, which then closes the child in order
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, HANDED: self.settings.to_json(), **import_environment()}


def handed_settings() -> TrackingSettings | None:
    """The settings that the process which started this one has handed over; None when a user has called."""
    text = os.environ.pop(HANDED, None)
    return None if text is None else TrackingSettings.from_json(text)


def _text(errors: IO[str]) -> str:
    errors.seek(0)
    return "\n".join(line.strip() for line in errors.read().splitlines() if line.strip())
