"""Child processes of the server: what reads data or models, or runs code, does so there, within limits.

Each runs `tuning.service.child` and answers questions: one, or, where it keeps models in memory, one after the other.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tuning.basics.documents import Json
from tuning.basics.environment import import_environment
from tuning.basics.wording import RUN_ADDRESS, duration
from tuning.errors import QuotaError, RunError, UnavailableError, error_told
from tuning.service import child
from tuning.service.names import AS_THEY_ARE, Names
from tuning.service.settings import GB, ServiceSettings
from tuning.storage.data_roots import VARIABLE

_Made = TypeVar("_Made")
KILLED = (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT)
#: Variables of the server that are nobody else's matter.
SECRETS = ("TUNING_TOKEN", "TUNING_TOKEN_FILE", "TUNING_DATABASE", "PGPASSWORD", "PGPASSFILE")
ENDING = "the server is ending. Try again when it is there."


@dataclass(frozen=True)
class ChildLimits:
    """What a child process may take: seconds of wall time for an answer, and bytes of memory for its data."""

    seconds: float = 300.0
    memory: int = 4 * GB


@dataclass(frozen=True)
class Kind:
    """How many children of a kind there may be.

    made: what they make, as who asks for too many is told. at_once, most_open: how many work in all, and how many of a
    team work or wait.
    """

    made: str
    at_once: int
    most_open: int


class Child:
    """A process that answers questions. Whoever starts it sees to its end; it also ends with the thread that starts it.

    environment: variables besides this process's own, without `SECRETS`. folder: in which it works.
    """

    def __init__(self, environment: Mapping[str, str], limits: ChildLimits, folder: Path | None = None) -> None:
        own = {name: value for name, value in os.environ.items() if name not in SECRETS}
        self._limits, self._asked = limits, time.monotonic()
        self.process = subprocess.Popen(  # noqa: S603 - this program's own module, and no shell
            [sys.executable, "-m", child.__name__, str(limits.memory)],
            cwd=folder,
            env={**own, **import_environment(), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def fresh(self) -> bool:
        """Whether it lives, and is not about to end by itself."""
        return self.process.poll() is None and time.monotonic() - self._asked < 0.9 * child.IDLE_S

    def ask(self, function: str, values: Mapping[str, object], names: Names = AS_THEY_ARE) -> object:
        """Return what a function of the child returns for these values; raise the error that it raises.

        names: replace paths in both. `RunError` where it takes too long or the process dies; it is ended then.
        """
        self._asked, answer = time.monotonic(), b""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        timer = threading.Timer(self._limits.seconds, self._kill)
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError, ValueError):  # it has ended, or was ended
                stdin.write(json.dumps({"function": function, "values": values}).encode() + b"\n")
                stdin.flush()
                answer = stdout.readline()
            if not answer.endswith(b"\n"):
                raise RunError(self._why_ended())
        finally:
            timer.cancel()
        return result_of(json.loads(answer), names)

    def end(self) -> None:
        """Kill what is left of it and of those that it has started."""
        self._kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def _why_ended(self) -> str:
        """Why it has given no answer; it has ended, or does so now."""
        if time.monotonic() - self._asked >= self._limits.seconds:
            return f"it took longer than {duration(self._limits.seconds)} and was ended."
        code = self.process.wait()
        if code not in KILLED:
            return f"its process has ended with {code} and without an answer."
        return (
            f"its process was ended by {signal.Signals(-code).name}: it may have needed more than "
            f"{self._limits.memory / GB:.0f} GB of memory."
        )


def result_of(answer: Json, names: Names) -> object:
    """Return what a function has returned, or raise the error that it has raised. answer: of `tuning.service.child`."""
    told = names.document(answer)
    if "error" in told:
        raise error_told(told["error"])
    return told["made"]


class Children:
    """The child processes of a server, and the threads that wait for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[Kind, ThreadPoolExecutor] = {}
        self._open = Counter[tuple[Kind, str]]()
        self._alive = set[Child]()
        self._kept = OrderedDict[str, Child]()  # by team, while nobody asks them; the one asked last is last
        self._turns = defaultdict[str, threading.Lock](threading.Lock)  # one thread at a time asks a team's
        self._closed = False

    def submit(self, kind: Kind, team: str, work: Callable[[], _Made]) -> Future[_Made]:
        """Let a thread do what needs a child; `QuotaError` where as many of a team's work or wait as may."""
        with self._lock:
            if self._closed:
                raise UnavailableError(ENDING)
            if self._open[kind, team] >= kind.most_open:
                raise QuotaError(
                    f"{kind.most_open} {kind.made} of your team are being made, as many as may be at once. Try again "
                    "in some seconds.",
                    later=5.0,
                )
            if kind not in self._threads:
                self._threads[kind] = ThreadPoolExecutor(kind.at_once, thread_name_prefix=kind.made)
            self._open[kind, team] += 1
            future = self._threads[kind].submit(work)
        future.add_done_callback(lambda _: self._done(kind, team))
        return future

    def run(
        self,
        function: str,
        values: Mapping[str, object],
        *,
        environment: Mapping[str, str],
        limits: ChildLimits = ChildLimits(),
        folder: Path | None = None,
        names: Names = AS_THEY_ARE,
    ) -> object:
        """Ask a new child one question, as `Child.ask`."""
        asked = self._start(lambda: Child(environment, limits, folder))
        try:
            return asked.ask(function, values, names)
        except RunError as error:
            if self._closed:
                raise UnavailableError(ENDING) from error
            raise
        finally:
            self._end(asked)

    @contextlib.contextmanager
    def kept(self, team: str, most: int, start: Callable[[], Child]) -> Iterator[Child]:
        """A team's child for the one who asks; it is started where there is none, and stays.

        Of more than `most` that nobody asks, those end that were asked longest ago.
        """
        with self._lock:
            turn = self._turns[team]
        with turn:
            child = self._kept.pop(team, None)
            if child is not None and not child.fresh:
                self._end(child)
                child = None
            child = child or self._start(start)
            try:
                yield child
            finally:
                with self._lock:
                    self._kept[team] = child
                    ending = [self._kept.popitem(last=False)[1] for _ in range(len(self._kept) - most)]
                for each in ending:
                    self._end(each)

    def close(self) -> None:
        """End all children and start none any more: the server ends."""
        with self._lock:
            self._closed = True
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)
        for each in self._alive.copy():
            self._end(each)

    def _done(self, kind: Kind, team: str) -> None:
        with self._lock:
            self._open[kind, team] -= 1

    def _start(self, start: Callable[[], Child]) -> Child:
        child = start()
        self._alive.add(child)
        if self._closed:
            self._end(child)
            raise UnavailableError(ENDING)
        return child

    def _end(self, child: Child) -> None:
        child.end()
        self._alive.discard(child)


def run_variable(run: str) -> dict[str, str]:
    """The address of a run, for a process that works on it: its readers have no shell on this machine."""
    return {RUN_ADDRESS: f"/api/v1/runs/{run}"}


def roots_variable(settings: ServiceSettings, team: str) -> dict[str, str]:
    """The roots that a team may read, for a process that works for it; nothing of the service's own is below them."""
    # Without any root nothing may be read, while an empty variable would allow everything.
    roots = settings.roots(team) or (str(settings.work / "nothing"),)
    listed = [*roots, *(f"!{place}" for place in settings.own_places)]
    return {VARIABLE: "".join(f"{root}\n" for root in listed)}  # one a line: a colon may be in a name
