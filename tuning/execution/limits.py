"""Limits of time and memory that hold while C code has the interpreter.

A thread that watches never gets to run then. So time is limited by `faulthandler.dump_traceback_later(exit=True)`,
a watchdog in C, a thread that writes the Python stack and ends the process; memory by `RLIMIT_DATA`, which turns
an allocation too many into an ordinary `MemoryError` before the node's own killer looks at the worker. (RLIMIT_AS would
count shared memory, of which an idle Ray worker has gigabytes mapped.)

A trial that reports steps is not ended like this but fails at its next step, and a study's time is a stopping rule, so
that both hold wherever trials run. What hangs is left a quarter more before its process is ended: by the watchdog in a
packed worker, by the driver where trials are spread.
Where no limit is set, a packed worker ends what makes no step at all for long
(`tuning.basics.timing.hang_seconds`), so that a hang never stops the others.
"""

from __future__ import annotations

import faulthandler
import math
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import IO

from schedulers.protocols import Reason
from schedulers.stopping.study_time import StudyTimeStopper
from tuning.basics.timing import HANG_TIMES
from tuning.definition.customer_limits import Limits
from tuning.notes import EndCode
from tuning.planning.capacity import free_memory, machine_slots
from tuning.records.schema import TrialRecord
from tuning.steps import Step
from tuning.study.interfaces import Rule

LOADING_TIMES = 3  # times as long as one process another one may take to load the same libraries
HARD_OVER_SOFT = 1.25  # a hard limit's share of the soft one
LEEWAY_S = 1.0
WATCHDOG_SLACK = 0.1  # the watchdog may fire 10 % late, so it need not be re-armed for every short trial
SHARE_OF_FREE_MEMORY = 0.8  # of the memory that is free, for all slots of a node together, also those of other runs
LEAST_MEMORY = 512 * 2**20
REPLACE_WORKER_ABOVE = 0.6  # of its memory limit: a worker that keeps more between two studies is replaced


class TrialTimeoutError(Exception):
    """A trial took longer than `limits.trial_seconds`."""


def hard(limit: float | None, grace: float) -> float:
    """Return after how many seconds what hangs is ended. limit: None for no limit. grace: for loading."""
    return float("inf") if limit is None else limit * HARD_OVER_SOFT + LEEWAY_S + grace


def loading_grace(cold: float, earlier: Iterable[float]) -> float:
    """Return the seconds on top of its limits for the first study of a process that has libraries to load.

    cold: where nothing is known of them. earlier: `TimeLimits.loading` of processes that have worked on the same
    studies on this machine; infinite where unknown.
    """
    known = [seconds for seconds in earlier if seconds < math.inf]
    return min(cold, LOADING_TIMES * max(known, default=math.inf))


def study_limit(limits: Limits, clock: Callable[[], float] = time.monotonic) -> list[Rule]:
    """Return `study_seconds` as a stopping rule; none where there is no limit."""
    seconds = limits.study_seconds
    if seconds is None:
        return []
    spent = EndCode.TOOK_LONGER("study_seconds", limit=seconds)
    return [StudyTimeStopper(seconds, clock, Reason(spent.code.id, spent.subject, spent.values))]


class TimeLimits:
    """Watch over one worker's studies; a context manager.

    stack: a file with a descriptor, where the watchdog writes before it ends the process; None for no watchdog.
    grace: seconds on top while libraries have to be loaded; from the second study of a process on they are, whatever
    the batch.

    Attributes:
        loading: seconds in which this process has loaded its libraries, at most: those of its first study. Infinite
            where that has not come to its final fits, or has trained nothing.
    """

    loading = math.inf  # of this process
    _studies = 0  # of this process

    def __init__(self, limits: Limits, stack: IO[bytes] | None = None, grace: float = 0.0) -> None:
        self.limits = limits
        self.grace = grace
        self._stack = stack
        self._study_until = self._armed_until = float("inf")
        self._began = self._patience = self._longest = 0.0
        self._trained = False

    def __enter__(self) -> TimeLimits:
        if self._stack is not None:
            faulthandler.enable(file=self._stack, all_threads=False)
        return self

    def __exit__(self, *exc: object) -> None:
        faulthandler.cancel_dump_traceback_later()
        faulthandler.enable(file=sys.__stderr__ or sys.stderr)

    def study(self, patience: float = math.inf) -> None:
        """Begin a study. patience: seconds for which it may make no step, where `trial_seconds` is not set."""
        self._patience = patience
        TimeLimits._studies += self._stack is not None
        if TimeLimits._studies > 1:
            self.grace = 0.0
        self._began = time.monotonic()
        self._study_until = self._began + hard(self.limits.study_seconds, self.grace)

    def took(self, trials: Iterable[TrialRecord]) -> None:
        """Take in how long trials have taken; others may take several times as long."""
        self._longest = max([self._longest, *(trial.seconds for trial in trials)])

    def trial(self) -> None:
        """Begin a trial's training, which loads what it needs."""
        self._trained = self._stack is not None
        self.part()

    def part(self, seconds: float | None = None) -> None:
        """Begin a part of a study that has the trial's limit: reading the data, a trial, the final fits.

        seconds: how long a part may take that belongs to no study.
        """
        limit, now = self.limits.trial_seconds, time.monotonic()
        if seconds is not None:
            self._study_until, allowed = float("inf"), seconds
        elif limit is None:
            allowed = max(self._patience, HANG_TIMES * self._longest)
        else:
            allowed = hard(limit, self.grace)
        wanted = min(now + allowed, self._study_until)
        if self._stack is None or wanted == float("inf"):
            return
        late = wanted + WATCHDOG_SLACK * (wanted - now)
        if not wanted <= self._armed_until <= late:  # else it is set to a moment that serves this part too
            self._armed_until = late if wanted < self._study_until else wanted
            faulthandler.dump_traceback_later(max(0.05, self._armed_until - now), exit=True, file=self._stack)

    def final_fit(self) -> None:
        """Begin a fit after the last trial; it may take as long as a study, however little of its time is left."""
        now = time.monotonic()
        if TimeLimits._studies == 1 and self._trained and TimeLimits.loading == math.inf:
            TimeLimits.loading = now - self._began
        self._study_until = max(self._study_until, now + hard(self.limits.study_seconds, self.grace))
        self.part()

    def pause(self) -> None:
        """Watch nothing that is not the customer's doing: writing records, waiting for the driver."""
        if self._armed_until != float("inf"):
            self._armed_until = float("inf")
            faulthandler.cancel_dump_traceback_later()

    def limited(self, start: Callable[..., Iterable[Step]]) -> Callable[..., Iterable[Step]]:
        """Return training code that fails where it reports a step after more than a trial's time of its own work."""
        limit, grace = self.limits.trial_seconds, self.grace
        if limit is None:
            return start

        def limited(*arguments: object) -> Iterator[Step]:
            spent, began = 0.0, time.monotonic()
            for step in start(*arguments):
                spent += time.monotonic() - began
                if spent > limit + grace:
                    raise TrialTimeoutError(EndCode.TOOK_LONGER("trial_seconds", limit=limit))
                yield step
                began = time.monotonic()  # in between, other trials may have had their turn

        return limited

    def each_step(self, start: Callable[..., Iterable[Step]]) -> Callable[..., Iterable[Step]]:
        """Return training code of which each step is a part."""

        if self._stack is None:
            return start

        def watched(*arguments: object) -> Iterator[Step]:
            for step in start(*arguments):
                self.part()
                yield step

        return watched


class MemoryLimit:
    """A limit on what this process may allocate beyond what it had when it first came here; a context manager.

    gigabytes: None is the free memory's share of one of `slots` workers. shared: bytes on top that all studies share.
    """

    def __init__(self, gigabytes: float | None, slots: int, shared: int = 0) -> None:
        self._base = _allocated_at_first() + max(0, shared)
        self.limit = int(gigabytes * 2**30) if gigabytes is not None else max(LEAST_MEMORY, _fair_share(slots))
        self._before = resource.getrlimit(resource.RLIMIT_DATA)

    def __enter__(self) -> MemoryLimit:
        soft, hard = self._base + self.limit, self._before[1]
        if _allocated_at_first() and (hard == resource.RLIM_INFINITY or soft < hard):
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        return self

    def __exit__(self, *exc: object) -> None:
        resource.setrlimit(resource.RLIMIT_DATA, self._before)

    @property
    def worn_out(self) -> bool:
        """True when earlier studies left so much behind that a later one would fail for it."""
        return bool(_allocated_at_first()) and allocated() - self._base > REPLACE_WORKER_ABOVE * self.limit


def allocated() -> int:
    """Return the bytes that RLIMIT_DATA counts, private and writable; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:  # before every study
            return int(file.read().split()[5]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


@cache
def _allocated_at_first() -> int:
    return allocated()


def _fair_share(slots: int) -> int:
    return int(SHARE_OF_FREE_MEMORY * free_memory() / machine_slots(slots))
