"""A real `mlflow server` on loopback, for tests and benchmarks."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType


class MlflowServer:
    """Runs in `folder`, on a SQLite database that begins as a copy of `template` (an empty, migrated one)."""

    def __init__(self, folder: Path, template: Path, seconds: float = 300.0) -> None:
        database = folder / "server.db"
        shutil.copy(template, database)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.uri = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{database}"]
        command += ["--artifacts-destination", str(folder / "artifacts")]
        # Its workers for background jobs take more CPU to start than all that is asked of it here.
        environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        self.log = folder / "server.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, cwd=folder, start_new_session=True, env=environment
            )
        end = time.monotonic() + seconds
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise RuntimeError(self.log.read_text())
            time.sleep(0.1)

    def __enter__(self) -> MlflowServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _answers(self) -> bool:
        try:
            return bool(urllib.request.urlopen(f"{self.uri}/health", timeout=5).status == 200)
        except (urllib.error.URLError, OSError):
            return False
