"""Child processes of the server: what reads data or models, or runs code, does so there, within limits."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from tuning.basics.documents import Json
from tuning.basics.environment import import_environment
from tuning.basics.wording import RUN_ADDRESS, duration
from tuning.errors import QuotaError, RunError, UnavailableError
from tuning.service import limited
from tuning.service.settings import GB, ServiceSettings
from tuning.storage.data_roots import VARIABLE
from tuning.storage.names import mask_in

_Made = TypeVar("_Made")
MOST_SAID = 20_000  # bytes of stderr that are looked at, from its end
KILLED = (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT, -signal.SIGXCPU)
USAGE = 2  # what a command ends with where its definition or data has to change
#: Variables of the server that are nobody else's matter.
SECRETS = ("TUNING_TOKEN", "TUNING_TOKEN_FILE", "TUNING_DATABASE", "PGPASSWORD", "PGPASSFILE")


@dataclass(frozen=True)
class ChildLimits:
    """What a child process may take: seconds of wall time (0 for any), and bytes of memory for its data."""

    seconds: float = 300.0
    memory: int = 4 * GB


@dataclass(frozen=True)
class ChildEnd:
    """How a child process has ended. code: its exit code, output: what it wrote to stdout, said: to stderr."""

    code: int
    output: bytes
    said: str

    @property
    def failure(self) -> Json:
        """What stdout holds of `tuning.errors.failure`; nothing of a child that has said none."""
        with contextlib.suppress(ValueError):
            found = json.loads(self.output)
            return found if isinstance(found, dict) and "reason" in found else {}
        return {}

    @property
    def reason(self) -> str:
        """Why the child failed: what it says itself, else the last line of stderr."""
        if told := self.failure:
            return mask_in(str(told["reason"]))
        lines = [line for line in self.said.splitlines() if line.strip()]
        return mask_in(lines[-1]) if lines else f"it ended with {self.code} and said nothing"


class _Running:
    """The children of this process that have not ended."""

    def __init__(self) -> None:
        self._processes = set[subprocess.Popen[bytes]]()
        self._lock = threading.Lock()
        self._closed = False

    def add(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._processes.add(process)
            closed = self._closed
        if closed:
            self.end(process)
            raise UnavailableError("the server is ending. Try again when it is there.")

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill what is left of a child and of those that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        with self._lock:
            self._processes.discard(process)

    def end_all(self) -> None:
        with self._lock:
            self._closed = True
            left = list(self._processes)
        for process in left:
            self.end(process)


_running = _Running()
end_child = _running.end
end_children = _running.end_all  # and start none any more: the server ends


def start_child(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    limits: ChildLimits,
    *,
    folder: Path | None,
    stdin: IO[bytes] | int,
    stdout: IO[bytes] | int,
    stderr: IO[bytes] | int,
) -> subprocess.Popen[bytes]:
    """Start `python -m MODULE ARGUMENTS` in a session of its own; it ends with the thread that has started it.

    Arguments as of `run_child`; whoever starts it sees to its end, by `end_child`.
    """
    own = {name: value for name, value in os.environ.items() if name not in SECRETS}
    size = [str(int(limits.seconds) + 1 if limits.seconds else 0), str(limits.memory)]
    child = subprocess.Popen(  # noqa: S603 - this program's own modules, and no shell
        [sys.executable, "-I", "-S", limited.__file__, *size, sys.executable, "-m", module, *arguments],
        cwd=folder,
        env={**own, **import_environment(), **environment},
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )
    _running.add(child)
    return child


def run_child(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    limits: ChildLimits = ChildLimits(),
    *,
    folder: Path | None = None,
    given: bytes = b"",
) -> ChildEnd:
    """Run `python -m MODULE ARGUMENTS` to its end, or to that of this process, however that comes.

    environment: beside this process's own, of which `SECRETS` are left out. folder: in which it works. given: its
    input. `RunError` when it takes longer than it may, or dies of its memory; its whole process group is ended then.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as input_file:
        input_file.write(given)
        input_file.seek(0)
        child = start_child(
            module, arguments, environment, limits, folder=folder, stdin=input_file, stdout=output, stderr=said
        )
        try:
            code = child.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            raise RunError(f"it took longer than {duration(limits.seconds)} and was ended.") from None
        finally:
            _running.end(child)
        if code in KILLED:
            raise RunError(killed_sentence(code, limits))
        output.seek(0)
        said.seek(max(0, said.seek(0, os.SEEK_END) - MOST_SAID))
        return ChildEnd(code, output.read(), said.read().decode("utf-8", "replace"))


def killed_sentence(code: int, limits: ChildLimits) -> str:
    """Why a child process was probably killed. code: one of `KILLED`."""
    return (
        f"its process was ended by {signal.Signals(-code).name}: it may have needed more than "
        f"{limits.memory / GB:.0f} GB of memory."
    )


class ChildQueue:
    """Threads that wait for child processes: some at once whoever asks, and some of a team that wait or work.

    what: they make, as who asks for too many is told. at_once, most_open: how many in all, and of a team.
    """

    def __init__(self, what: str, at_once: int, most_open: int) -> None:
        self._what, self._most_open = what, most_open
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="children")
        self._open, self._lock = Counter[str](), threading.Lock()

    def submit(self, team: str, work: Callable[[], _Made]) -> Future[_Made]:
        """Let something be made for a team; `QuotaError` where as many are being made for it as may be."""
        with self._lock:
            if self._open[team] >= self._most_open:
                raise QuotaError(
                    f"{self._most_open} {self._what} of your team are being made, as many as may be at once. Try again "
                    "in some seconds.",
                    later=5.0,
                )
            self._open[team] += 1
        future = self._threads.submit(work)
        future.add_done_callback(lambda _: self._done(team))
        return future

    def close(self) -> None:
        """Begin no further ones."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _done(self, team: str) -> None:
        with self._lock:
            self._open[team] -= 1


def run_variable(run: str) -> dict[str, str]:
    """The address of a run, for a process that works on it: its readers have no shell on this machine."""
    return {RUN_ADDRESS: f"/api/v1/runs/{run}"}


def roots_variable(settings: ServiceSettings, team: str) -> dict[str, str]:
    """The roots that a team may read, for a process that works for it; nothing of the service's own is below them."""
    # Without any root nothing may be read, while an empty variable would allow everything.
    roots = settings.roots(team) or (str(settings.work / "nothing"),)
    listed = [*roots, *(f"!{place}" for place in settings.own_places)]
    return {VARIABLE: "".join(f"{root}\n" for root in listed)}  # one a line: a colon may be in a name
