"""The copy of a run while it goes on: its driver starts `tuning mlflow sync RUN --follow`, and waits at the end."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace

from tuning.errors import StorageError
from tuning.records.ownership import Term
from tuning.runs.begin import OwnedRun
from tuning.runs.observer import EndState, RunEnd, RunObserver
from tuning.storage.names import mask
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.follow import parts_of
from tuning.tracking.overview import overview
from tuning.tracking.settings import ENDED, CopyStatus, TrackingSettings, masked, settings_of
from tuning.tracking.summary import save_summary

logger = logging.getLogger(__name__)

TAIL = 1 << 14  # bytes of the child's output with its last lines


class MLflowCopy(RunObserver):
    """Copies a run to MLflow, unless its definition switches that off. not_copied: what is missing at the end."""

    at_end = "copying to MLflow"

    def __init__(self, owned: OwnedRun) -> None:
        self._owned = owned
        self._copy: LiveCopy | None = None
        self.not_copied: Mapping[str, int] = {}
        self._started = 0.0

    def began(self) -> None:
        owned = self._owned
        if owned.plan.spec.definition.mlflow.enabled:
            settings = settings_of(owned.directory, owned.term)
            self._copy = LiveCopy(settings, owned.term, owned.timing.mlflow_patience_s)
            self._copy.start()
        self._started = time.time()

    def ended(self, end: RunEnd) -> None:
        if self._copy is None:
            return
        try:
            if end.state is not EndState.LOST:
                self._write_summary(end)
        finally:
            self._close(self._copy, end.state)

    def _write_summary(self, end: RunEnd) -> None:
        """Write what MLflow shows of the run as a whole into the run directory, where the copy finds it."""
        owned, failed = self._owned, end.state is EndState.FAILED
        try:
            shown = overview(end.result, owned.plan.to_dict(), self._started, time.time(), failed=failed)
            save_summary(owned.directory, *shown)
        except (StorageError, OSError, ValueError, TypeError) as error:
            logger.warning("the run's summary for MLflow could not be written: %s", error)

    def _close(self, copy: LiveCopy, state: EndState) -> None:
        timing = self._owned.timing
        patience = {EndState.STOPPED: timing.mlflow_interrupted_s, EndState.KILLED: 0.0}
        status = copy.close(patience.get(state, timing.mlflow_closing_s))
        self.not_copied = status.not_copied
        if status.note:
            logger.warning("%s", status.note)
        if status.missing:
            logger.warning(
                "the copy in MLflow is incomplete: %s are missing (%s); complete it with: tuning mlflow sync %s",
                status.missing,
                status.error or ("the run was stopped first" if state is EndState.STOPPED else "no error was reported"),
                self._owned.directory.shown,
            )


class LiveCopy:
    """Copies the records of a run to MLflow while it goes on, in a child process. No method raises.

    The child follows the run directory and needs nothing from here: it ends by itself when this process dies. When it
    has died before its time it is started again at the end.

    term: the owner's, which this process is. patience: seconds that a store may fail, once the run has ended.
    """

    def __init__(self, settings: TrackingSettings, term: Term, patience: float = 10.0) -> None:
        self.settings, self.term, self.patience = settings, term, patience
        self._files: list[int] = []  # what the child writes: reports, and messages of libraries
        self._child: subprocess.Popen[str] | None = None
        self._why = ""

    def start(self) -> None:
        """Start the child process; it prepares the database at once."""
        command = [sys.executable, "-m", "tuning.cli", "mlflow", "sync", mask(self.settings.directory), "--follow"]
        command += ["--patience", str(self.patience), "--output", "json"]
        try:
            self._files = self._files or [_file(), _file()]
            self._child = subprocess.Popen(  # noqa: S603  # our own interpreter and our own words
                command,
                stdin=subprocess.PIPE,
                stdout=self._files[0],
                stderr=self._files[1],
                text=True,
                env=self.settings.environment(),
                process_group=0,  # Ctrl-C is for the driver, which then closes the child in order
            )
        except OSError as error:  # no process, no memory, no temporary file
            self._why = str(error)

    @property
    def status(self) -> CopyStatus:
        """How the copy stands, as the child reported it last."""
        status, ended, why = self._reported()
        if ended or self._goes_on:
            return status
        code = None if self._child is None else self._child.returncode
        message = f"The process that copies to MLflow ended with exit code {code}. {why or self._why}".strip()
        return replace(status, error=masked(message, self.settings.tracking_uri), healthy=False)

    def close(self, timeout: float = 30.0) -> CopyStatus:
        """The run has ended: wait for what is left of the copy, at most `timeout` seconds, and end the child."""
        until = time.monotonic() + timeout
        self._wait(until)
        if not self._reported()[1] and not self._goes_on:  # it was killed, or has taken this process for dead
            self.start()
            self._wait(until)
        status, ended = self.status, self._reported()[1]
        if self._child is not None and self._goes_on:
            self._child.kill()
            self._child.wait()
        if said := masked("".join(map(_end_of, self._files[1:])), self.settings.tracking_uri, lines=1000):
            logging.getLogger("mlflow").warning("%s", said)  # for the run's log.txt
        status = status if ended else self._by_records(status)
        while self._files:
            os.close(self._files.pop())
        return status

    @property
    def _goes_on(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def _wait(self, until: float) -> None:
        """Tell the child that the run has ended, and wait for it."""
        if self._child is not None:
            with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
                self._child.communicate(ENDED, timeout=max(0.0, until - time.monotonic()))

    def _reported(self) -> tuple[CopyStatus, bool, str]:
        """(How the copy stands, whether the child has come to its end, the error that it has told)."""
        why = ""
        for line in reversed("".join(map(_end_of, self._files[:1])).split("\n")[:-1]):
            with contextlib.suppress(ValueError):
                report = json.loads(line)
                if "status" in report:
                    status = CopyStatus(**report["status"])
                    # Who calls this process dead has not seen its lease for a while, and is started again.
                    return status, "complete" in report and not status.abandoned, why
                why = why or str(report.get("reason", ""))
        return CopyStatus(), False, why

    def _by_records(self, status: CopyStatus) -> CopyStatus:
        """The status when the child did not come to its own end, and so has not seen everything."""
        with contextlib.suppress(StorageError):
            parts = parts_of(RunDirectory(self.settings.directory), self.term, summary=True)
            return replace(status, pending=max(status.pending, len(parts) - status.copied))
        return status


def _file() -> int:
    """A temporary file without a name."""
    file, name = tempfile.mkstemp()
    os.unlink(name)
    return file


def _end_of(file: int) -> str:
    """The end of a file, without moving the place where a child writes."""
    return os.pread(file, TAIL, max(0, os.fstat(file).st_size - TAIL)).decode(errors="replace")
