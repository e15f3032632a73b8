"""A server without HTTP in a process of its own:

    python service_process.py DATABASE STORAGE WORK SLOTS SCRIPT MLFLOW

It prints a line once it has the database and looks after its runs. SCRIPT: of the shell, in place of `tuning run`; it
has the run's directory in RUN. MLFLOW: the store that all runs are copied to.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2]))


class ServerProcess:
    """The same, started and killed from a test."""

    def __init__(self, database: str, folder: Path, slots: int, script: str = "", mlflow: str = "") -> None:
        storage, work = folder / "runs", folder / "work"
        self._command = [sys.executable, str(HERE), database, str(storage), str(work), str(slots), script, mlflow]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, also after it was killed."""
        self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, start_new_session=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send it a signal, and wait for its end."""
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.send_signal(number)
        self.process.stdout.close()
        return self.process.wait(60)


def main(url: str, storage: str, work: str, slots: str, script: str, mlflow: str) -> None:
    from tuning.service.children import Children
    from tuning.service.database import schema
    from tuning.service.database.connection import Database
    from tuning.service.settings import ServiceSettings
    from tuning.service.single_server import SingleServer
    from tuning.service.supervisor.drivers import search_command
    from tuning.service.supervisor.supervisor import Supervisor

    database = Database(url)
    schema.upgrade(database)
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    server = SingleServer(database, over.set)
    server.take()
    settings = ServiceSettings(
        database=url,
        storage=storage,
        work=Path(work),
        data=(str(Path(work).parent),),
        slots=int(slots),
        mlflow=mlflow or None,
    )

    def scripted(run):
        return ["/bin/sh", "-c", f"RUN={shlex.quote(run.run_directory)}; {script}"]

    supervisor = Supervisor(database, settings, Children(), command=scripted if script else search_command)
    supervisor.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    over.wait()
    supervisor.close()
    server.release()


if __name__ == "__main__":
    main(*sys.argv[1:])
