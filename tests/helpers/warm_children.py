"""Child processes that need not load their libraries: forks of one process, which has loaded them once per session.

A child of the product loads libraries for two seconds of a core. A test that is not about that takes these instead.
They are processes of their own all the same: what they kill, hang or exhaust is theirs.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from tempfile import TemporaryDirectory

LIBRARIES = (
    *("pytest", "cloudpickle", "optuna", "pyarrow.dataset", "skops.io", "ray.tune.schedulers"),
    *("ray.tune.search.optuna", "tuning.driver.runner", "tuning.execution.packed", "tuning.runs.prediction.workers"),
)


@cache
def _server() -> ForkServerContext:
    """Begins when first asked for and ends with this process."""
    from multiprocessing.forkserver import ensure_running

    from tuning.basics.environment import import_environment

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(LIBRARIES))
    before = dict(os.environ)
    os.environ.update(import_environment())  # a library looks at it when it is loaded
    try:
        ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(before)
    return context


class WarmChild:
    """In place of `subprocess.Popen` of `python -m MODULE NUMBER`, which is passed the file with this number."""

    def __init__(
        self, command: Sequence[str], *, pass_fds: Sequence[int], env: Mapping[str, str], **settings: object
    ) -> None:
        connection = Connection(os.dup(pass_fds[0]))
        self._process = _server().Process(target=_serve, args=(command[2], connection, dict(env)), daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int:
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


def _serve(module: str, connection: Connection, environment: Mapping[str, str]) -> None:
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    sys.argv = [module, str(connection.fileno())]
    runpy.run_module(module, run_name="__main__")


def run_script(script: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What `python SCRIPT ARGUMENTS` does, with all that it writes."""
    with TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        given = ([str(script), *arguments], str(cwd or Path.cwd()), str(out), str(err), dict(os.environ))
        child = _server().Process(target=_execute, args=given)
        child.start()
        child.join()
        assert child.exitcode is not None
        return subprocess.CompletedProcess(given[0], child.exitcode, out.read_text(), err.read_text())


def _execute(command: Sequence[str], cwd: str, out: str, err: str, environment: Mapping[str, str]) -> None:
    for number, path in enumerate((out, err), 1):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.argv = list(command)
    runpy.run_path(command[0], run_name="__main__")
