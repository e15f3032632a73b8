"""CPU seconds and memory of a process with all its descendants, sampled while it runs."""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Usage:
    """What was seen of a tree of processes.

    samples: (when, pid → CPU seconds so far, pid → bytes resident). roles: pid → what the process was last called.
    """

    root: int
    samples: list[tuple[float, dict[int, float], dict[int, int]]] = field(default_factory=list)
    roles: dict[int, str] = field(default_factory=dict)

    def cpu(self, begin: float, end: float) -> dict[str, float]:
        """CPU seconds between two moments by role, most first."""
        before, after = self._at(begin), self._at(end)
        by_role: dict[str, float] = {}
        for pid, seconds in after.items():
            by_role[self.roles[pid]] = by_role.get(self.roles[pid], 0.0) + seconds - before.get(pid, 0.0)
        return dict(sorted(by_role.items(), key=lambda item: -item[1]))

    def resident(self, begin: float, end: float) -> dict[str, float]:
        """Bytes resident by role, the mean over the samples between two moments (or the next one)."""
        first, last = self._position(begin), self._position(end)
        part = self.samples[first : max(last, first + 1)]
        by_role: dict[str, float] = {}
        for _, _, resident in part:
            for pid, size in resident.items():
                by_role[self.roles[pid]] = by_role.get(self.roles[pid], 0.0) + size / len(part)
        return by_role

    def _position(self, when: float) -> int:
        return min(bisect_left(self.samples, (when,)), len(self.samples) - 1)

    def _at(self, when: float) -> dict[int, float]:
        after = self._position(when)
        later, before = self.samples[after], self.samples[max(0, after - 1)]
        span = later[0] - before[0]
        part = 1.0 if span == 0 else min(1.0, max(0.0, (when - before[0]) / span))
        return {pid: (1 - part) * before[1].get(pid, 0.0) + part * seconds for pid, seconds in later[1].items()}


@contextmanager
def watching(root: int, period: float = 0.1) -> Iterator[Usage]:
    """Sample the tree below `root` until the block ends. A process that ends keeps its last sample's seconds."""
    usage, ended = Usage(root), threading.Event()

    def watch() -> None:
        while True:
            _sample(root, usage)
            if ended.wait(period):
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield usage
    finally:
        ended.set()
        thread.join()


def _sample(root: int, usage: Usage) -> None:
    found = dict(_processes())
    children: dict[int, list[int]] = {}
    for pid, (parent, *_) in found.items():
        children.setdefault(parent, []).append(pid)
    unseen, resident = [root], dict[int, int]()
    seconds = dict(usage.samples[-1][1]) if usage.samples else {}
    while unseen:
        pid = unseen.pop()
        unseen += children.get(pid, ())
        if pid in found:
            _, command, seconds[pid], resident[pid] = found[pid]
            usage.roles[pid] = "driver" if pid == root else _role(pid, command, usage.roles.get(pid))
    usage.samples.append((time.time(), seconds, resident))


def _role(pid: int, command: str, before: str | None) -> str:
    """What a process is for (many are called python); as before when it has ended and its parent has not noticed."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = stream.read().split(b"\0")
    except OSError:
        words = []
    named = [word.decode(errors="replace") for word in words if word]
    if not named:
        return before or command
    if "-m" in named[:-1]:
        return named[named.index("-m") + 1]
    return named[0][:15] if named[0].startswith("ray::") else command


def _processes() -> Iterator[tuple[int, tuple[int, str, float, int]]]:
    """pid → (parent, command, own CPU seconds, bytes resident) of everything that runs."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stream:
                text = stream.read().decode(errors="replace")
        except OSError:
            continue
        command = text[text.index("(") + 1 : text.rindex(")")]
        rest = text[text.rindex(")") + 2 :].split()
        yield int(name), (int(rest[1]), command, (int(rest[11]) + int(rest[12])) / TICK, int(rest[21]) * PAGE)
