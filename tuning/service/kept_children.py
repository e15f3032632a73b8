"""Child processes that go on between requests, one for each team: they keep what took long to load."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tuning.basics.wording import duration
from tuning.errors import RunError
from tuning.service.children import KILLED, ChildLimits, end_child, killed_sentence, start_child

IDLE_S = 900.0  # after so long without a question a child ends by itself
PIECE = 1 << 16


class KeptChild:
    """A child process that answers one line with one line, as long as it lives.

    folder: in which it works. limits: of memory, and of the seconds of each answer.
    """

    def __init__(
        self, module: str, arguments: Sequence[str], environment: Mapping[str, str], limits: ChildLimits, folder: Path
    ) -> None:
        self.folder, self._limits = folder, limits
        pipe, none = subprocess.PIPE, subprocess.DEVNULL
        lasting = ChildLimits(0.0, limits.memory)
        self._process = start_child(
            module, arguments, environment, lasting, folder=folder, stdin=pipe, stdout=pipe, stderr=none
        )
        self._asked = time.monotonic()

    @property
    def fresh(self) -> bool:
        """Whether it lives, and is not about to end by itself."""
        return self._process.poll() is None and time.monotonic() - self._asked < 0.9 * IDLE_S

    def ask(self, question: bytes) -> bytes:
        """The answer to a line. `RunError` where it takes too long or the process dies, which then is ended."""
        self._asked = time.monotonic()
        try:
            return self._answer(question)
        except (RunError, OSError) as error:
            self.end()
            code = self._process.returncode
            if isinstance(error, RunError) or code not in KILLED:
                raise RunError(str(error)) from error
            raise RunError(killed_sentence(code, self._limits)) from error

    def end(self) -> None:
        """Kill it, unless it has ended."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        end_child(self._process)

    def _answer(self, question: bytes) -> bytes:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(question + b"\n")
        stdin.flush()
        ready, answer = select.poll(), b""
        ready.register(stdout, select.POLLIN | select.POLLHUP)
        while not answer.endswith(b"\n"):
            left = self._asked + self._limits.seconds - time.monotonic()
            if left <= 0 or not ready.poll(left * 1000):
                raise RunError(f"it took longer than {duration(self._limits.seconds)} and was ended.")
            piece = os.read(stdout.fileno(), PIECE)
            if not piece:
                self._process.wait()
                raise OSError("its process has ended without an answer.")
            answer += piece
        return answer


@dataclass
class _Place:
    """A team's child, if there is one, which one thread at a time may ask."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    child: KeptChild | None = None
    used: float = 0.0


class KeptChildren:
    """A child for each team that asks. Beyond `most` of them, the one that was asked longest ago ends.

    start: makes a team's child.
    """

    def __init__(self, most: int, start: Callable[[str], KeptChild]) -> None:
        self._most, self._start = most, start
        self._places: dict[str, _Place] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def of(self, team: str) -> Iterator[KeptChild]:
        """A team's child, for the one who asks; it is started where there is none."""
        with self._lock:
            place = self._places.setdefault(team, _Place())
        with place.lock:
            if place.child is not None and not place.child.fresh:
                place.child.end()
                place.child = None
            if place.child is None:
                self._make_room()
                place.child = self._start(team)
            place.used = time.monotonic()
            yield place.child

    def _make_room(self) -> None:
        with self._lock:
            places = sorted(self._places.values(), key=lambda each: each.used)
        there = [place for place in places if place.child is not None]
        for place in there[: max(0, len(there) - self._most + 1)]:
            if place.lock.acquire(blocking=False):  # else it is at work
                try:
                    if place.child is not None:
                        place.child.end()
                    place.child = None
                finally:
                    place.lock.release()
