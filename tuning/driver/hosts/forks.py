"""Forks of this process as a host: they work while it is not known whether a run is worth the start of Ray.

A fork has everything loaded, so its first trial begins at once. It does what Ray's workers do, with the same limits and
marks, so Ray's workers go on where it stops. A fork that crashes or hangs costs this process nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import mmap
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from types import TracebackType

from tuning.basics.timing import Timing
from tuning.definition.options import Resources
from tuning.driver.cluster import ONE_THREAD
from tuning.driver.hosts.base import POOLING, HostStoppedError, StopConditions
from tuning.execution.crash_log import Nodes, forget
from tuning.execution.packed import FALSE_STARTS, work_batch
from tuning.execution.pool import MOST_LEFT_OUT
from tuning.execution.reports import Listener, WorkerReport, hand_on
from tuning.execution.spread.running import SpreadRun
from tuning.execution.study_run import load_libraries
from tuning.execution.worker import WorkerRun
from tuning.records.parts import POOL_BATCH
from tuning.runs.begin import OwnedRun
from tuning.runs.progress import Counter
from tuning.study.study import customers_of

PARTS_S = 0.5  # between two parts of their records, from which it is seen how fast they are
LISTEN_S = 0.2  # to them, between two looks at whether the run is to stop
JUDGE_S = 1.0  # from the first trials on, before the pace is judged
STOP_S = 1.0  # for a trial to end in when the workers are to stop; a longer one is tried again
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True)
class Through:
    """A fork's last message: it has done all of its work. Its exit status says nothing, since a user's code sets it."""


class ForkHost:
    """Works as long as the rest takes less time than the start of Ray, and goes on while Ray starts.

    start_next: starts the host that comes next; called while the forks work.
    """

    def __init__(self, owned: OwnedRun, start_next: Callable[[Counter], None]) -> None:
        self.owned, self._start_next = owned, start_next

    def work(self, counter: Counter, halt: StopConditions) -> bool:
        """See `Host`."""
        counter.doing = "starting"
        load_libraries(self.owned.plan.spec, self.owned.plan.studies[0])
        seconds = self.owned.timing.ray_start_s
        with ForkedWorkers(self.owned, counter) as workers:
            halt.signals.order = workers.kill
            self._train_pool(workers, counter, halt)
            pace = Pace(counter, self.owned.timing)
            if workers.finished:
                workers.begin()
            while workers.busy and not halt.wanted and not pace.slower_than(seconds):
                workers.listen(LISTEN_S)
            if workers.busy and not halt.wanted:
                with workers.heard():
                    self._start_next(counter)
                while workers.busy and not halt.wanted and not pace.slower_than(seconds / 2):
                    workers.listen(LISTEN_S)
        halt.signals.order = None
        return not workers.finished

    def _train_pool(self, workers: ForkedWorkers, counter: Counter, halt: StopConditions) -> None:
        """Have one worker after another train the run's pool; each death is noted, so it ends."""
        limits = self.owned.plan.spec.definition.limits
        for _ in range(limits.crashes_before_quarantine + MOST_LEFT_OUT + FALSE_STARTS):
            if halt.wanted or not self.owned.pool_is_due:
                break
            counter.doing = POOLING
            workers.train_pool()
            while workers.busy and not halt.wanted:
                workers.listen(LISTEN_S)
        workers.finished = not halt.wanted and not self.owned.pool_is_due


class Pace:
    """The rate of trials from now on. The first ones only set the clock: they wait for libraries."""

    def __init__(self, counter: Counter, timing: Timing) -> None:
        self._counter, self._patience = counter, timing.first_trial_s
        self._heard, self._done = counter.clock(), counter.counted.done_trials
        self._first: tuple[float, int] | None = None

    def slower_than(self, seconds: float) -> bool:
        """Return whether the rest takes longer than that, as far as is known; so it does where nothing comes."""
        now, done = self._counter.clock(), self._counter.counted.done_trials
        if done > self._done:
            self._heard, self._done = now, done
            self._first = self._first or (now, done)
        if self._first is None:
            return now - self._heard > self._patience
        since, before = self._first
        if now - since < JUDGE_S:
            return False
        left = (now - since) / max(1, done - before) * (self._counter.counted.trials - done)
        return max(left, now - self._heard) > seconds


def may_fork(owned: OwnedRun) -> bool:
    """Return whether a run may begin in forks of this process.

    It may not if its definition says where it runs, if a trial asks for more than a core or for several processes, if
    the run or its data is on object storage (clients of it do not survive a fork), if the process runs other threads of
    its own (a fork would hold their locks for ever), or if it has begun to use Ray or a GPU.
    """
    definition = owned.plan.spec.definition
    ray, torch = sys.modules.get("ray"), sys.modules.get("torch")
    return (
        sys.platform == "linux"
        and threading.current_thread() is threading.main_thread()
        and definition.placement == "auto"
        and owned.plan.worker_group is None
        and not os.environ.get("RAY_ADDRESS")
        and not (ray is not None and ray.is_initialized())
        and not (torch is not None and torch.cuda.is_initialized())
        and owned.directory.local
        and all(study.resources == Resources() for study in owned.plan.studies.first_of_each("resources"))
        and not any(
            "://" in file for files in customers_of(owned.plan.studies).shared("files").distinct for file in files
        )
    )


class ForkedWorkers:
    """A context manager: the forked workers of a run, at most one per slot, which are ended when it is left.

    One of them runs the trials of all spread studies, one after the other.

    listener: receives each report of a worker.
    """

    def __init__(self, owned: OwnedRun, listener: Listener) -> None:
        self.owned, self.listener = owned, listener
        self.finished = True  # so far: each worker that has ended had done all of its work
        self._stop = mmap.mmap(-1, 1)  # shared with the forks
        self._workers: dict[Connection, int] = {}  # their process ids
        self._through: set[Connection] = set()  # of the workers that have said so
        run = WorkerRun.from_owned(owned, replace(owned.timing, parts_s=min(PARTS_S, owned.timing.parts_s)))
        self._run = replace(run, spec=owned.plan.spec)  # which forks need not read from the run

    def __enter__(self) -> ForkedWorkers:
        return self

    def train_pool(self) -> None:
        """Fork a worker that trains the run's pool."""
        self._fork(partial(self._packed, [POOL_BATCH], self.owned.plan.slots))

    def begin(self) -> None:
        """Fork the workers that run the studies."""
        plan = self.owned.plan
        if plan.spread:
            self._fork(self._spread)
        count = min(max(1, plan.slots - bool(plan.spread)), len(plan.batches), len(os.sched_getaffinity(0)))
        for first in range(count):
            self._fork(partial(self._packed, range(first, len(plan.batches), count), count))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop[0] = 1
        until = time.monotonic() + STOP_S
        while error is None and self._workers and time.monotonic() < until:
            self.listen(until - time.monotonic())
        self.kill()
        while self._workers:
            self.listen(None)

    @property
    def busy(self) -> bool:
        """Whether any of them works."""
        return bool(self._workers)

    def listen(self, seconds: float | None) -> None:
        """Take in what they report, and how they end; wait for that, for so long at most."""
        for pipe in wait(list(self._workers), seconds):
            assert isinstance(pipe, Connection)
            try:
                message = pipe.recv()
            except (EOFError, OSError):
                self._ended(pipe)
                continue
            if isinstance(message, Through):
                self._through.add(pipe)
            else:
                hand_on(self.listener, message)

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Take in what they report while this thread is busy with something else, so that progress is shown."""
        over = threading.Event()

        def listen() -> None:
            while self.busy and not over.is_set():
                self.listen(LISTEN_S)

        thread = threading.Thread(target=listen, name="forked-workers", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def kill(self) -> None:
        """End them at once; what they have not recorded is done again."""
        for pid in list(self._workers.values()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _ended(self, pipe: Connection) -> None:
        pid = self._workers.pop(pipe)
        pipe.close()
        os.waitpid(pid, 0)
        self.finished &= pipe in self._through
        self._through.discard(pipe)
        if self._stop[0]:
            forget(self.owned.directory, self.owned.term, pid)  # its study is not to blame

    def _fork(self, work: Callable[[Listener], None]) -> None:
        receiver, sender = Pipe(duplex=False)
        parent = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: those of this process hold no lock
            pid = os.fork()
        if pid:
            sender.close()
            self._workers[receiver] = pid
            return
        try:
            _leave_alone(parent)
            work(sender.send)
            if not self._stop[0]:
                sender.send(Through())
        finally:
            os._exit(0)

    def _packed(self, batches: Iterable[int], slots: int, report: Listener) -> None:
        def report_and_look(result: WorkerReport) -> None:
            report(result)
            if self._stop[0]:
                raise HostStoppedError

        for batch in batches:
            work_batch(self._run, batch, report_and_look, Nodes("", slots))

    def _spread(self, report: Listener) -> None:
        SpreadRun(self.owned, self._run, report).work(lambda: bool(self._stop[0]))


def _leave_alone(parent: int) -> None:
    """Let a fork have no signal, output, log or thread of its parent, and no life without it."""
    ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    logging.disable()  # its handlers' locks may be held by threads that are not here
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # to the end of the process
    os.dup2(sys.stdout.fileno(), 1)
    os.dup2(sys.stdout.fileno(), 2)
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
