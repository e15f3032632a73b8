"""A private PostgreSQL server for tests: in a temporary folder, on loopback, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

PROGRAMS = ("initdb", "pg_ctl", "postgres")


def missing() -> str | None:
    """Why there can be no server here; None when there can."""
    absent = [name for name in PROGRAMS if _program(name) is None]
    if absent:
        return f"PostgreSQL is not installed ({', '.join(absent)} not found); Debian: apt-get install postgresql"
    if os.geteuid() == 0 and _unprivileged() is None:
        return "PostgreSQL does not run as root, and there is no user 'postgres' to run it as"
    return None


class PostgresServer:
    """initdb, start, stop. durable: with fsync, for measurements; no test pulls a plug."""

    def __init__(self, durable: bool = False) -> None:
        self.durable = durable
        self.folder = Path(tempfile.mkdtemp(prefix="tuning-postgres-"))
        user = _unprivileged()
        if user is not None:
            shutil.chown(self.folder, user)
        self.folder.chmod(0o700)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._run("initdb", "-D", str(self.folder / "data"), "-A", "trust", "-U", "tuning", "--no-sync")
        self.start()

    def uri(self, driver: str = "psycopg2") -> str:
        return f"postgresql+{driver}://tuning@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder}{'' if self.durable else ' -F'}"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-o", options, "-l", log, "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command: Sequence[str] = [str(_program(program)), *arguments]
        if _unprivileged() is not None:
            command = ["runuser", "-u", "postgres", "--", *command]
        answer = subprocess.run(
            command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60
        )
        assert answer.returncode == 0, answer.stderr


def _program(name: str) -> str | None:
    """On the PATH, or where Debian keeps it."""
    found = shutil.which(name)
    if found is None:
        installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        found = str(installed[-1]) if installed else None
    return found


def _unprivileged() -> str | None:
    """The user to run the server as, when this process is root."""
    if os.geteuid() != 0 or shutil.which("runuser") is None:
        return None
    import pwd

    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return None
