"""Ray as a host: Tuners over all studies, one after the other until nothing is left."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tuning.basics.public import is_interactive
from tuning.basics.wording import amount, one_line
from tuning.driver.cluster import end_ray, head_answers, kill_ray, start_ray
from tuning.driver.ending import write_outcome
from tuning.driver.hosts.base import POOLING, StopConditions
from tuning.driver.hosts.ready_workers import ready_workers, start_workers
from tuning.driver.log_capture import stdout_logged
from tuning.driver.tuner import build_tuner, run_queue
from tuning.errors import DiskFullError, HeadLostError, MachineError, RunError, StorageError, TuningError, code_of
from tuning.execution.reports import Listener, hand_on
from tuning.execution.spread.running import SpreadRun
from tuning.execution.worker import WorkerRun
from tuning.planning.capacity import Capacity, machines_now
from tuning.planning.plan_notes import check_own_machine
from tuning.runs.begin import OwnedRun
from tuning.runs.observer import EndState, RunEnd
from tuning.runs.progress import Counter, WorkerError
from tuning.runs.results import RunResult

if TYPE_CHECKING:
    from ray import tune

    from tuning.driver.hosts.tune_workers import TuneWorkers

logger = logging.getLogger(__name__)

FRUITLESS_ATTEMPTS = 3  # of Tuners in a row, which have recorded nothing
LOOK_S = 1.0
OWN_S, CLUSTER_S = 2.0, 40.0  # without an answer; that of a cluster may come back within the minute that Ray waits
WORKER_DEATHS = 8  # of a batch in a row, without anything recorded, beyond those that put a study aside


class RayHost:
    """Works on the Ray that is there, or on one of this process.

    All Tuners share one `Capacity`: what one of them has waited for in vain, the next one does not wait for again.
    """

    def __init__(self, owned: OwnedRun) -> None:
        self.owned = owned
        self._own_ray = False
        self._capacity = Capacity(machines_now(), owned.timing.room_s)

    def start(self, counter: Counter) -> None:
        """Start Ray unless it is there; `RunError` where it does not start."""
        counter.doing = "starting Ray"
        try:
            self._own_ray |= start_ray(self.owned.plan)
        except RunError as error:
            raise type(error)(f"{error} Then: {self.owned.resume_advice()}") from error

    def _set_patience(self) -> None:
        """Set how long to wait for machines: no machine joins a Ray of one without an address."""
        timing, grows = self.owned.timing, os.environ.get("RAY_ADDRESS") or len(self._capacity.machines()) > 1
        self._capacity.patience = timing.room_s if grows else min(timing.room_s, timing.own_room_s)

    def work(self, counter: Counter, halt: StopConditions) -> bool:
        """See `Host`."""
        from tuning.driver.hosts.tune_workers import NodeWatch, TuneWorkers

        self.start(counter)
        self._set_patience()
        deaths = WORKER_DEATHS + self.owned.plan.spec.definition.limits.crashes_before_quarantine
        workers = TuneWorkers(halt, counter, deaths, NodeWatch(counter.lost_nodes))
        halt.signals.order = workers.kill
        counter.doing = POOLING if self.owned.pool_is_due else "starting workers"
        try:
            with head_watched(self.owned, counter.lost_nodes):
                self._fit_until_done(workers, counter)
            if is_interactive():
                start_workers(self.owned.plan.slots)  # for the next cell
        except KeyboardInterrupt:
            workers.kill()
            raise
        return False

    def tuner(self) -> tune.Tuner:
        """A Tuner over the run that its caller fits; Ray is started. `PlanError` where no machine has room."""
        from tuning.execution.bridge import SpreadTrials

        check_own_machine(self.owned.plan.spec.definition, self.owned.plan.studies, self.owned.plan.slots)
        start_ray(self.owned.plan)
        self._set_patience()
        spread = self._spread_run(_ignore)
        studies = spread.open() if self.owned.plan.spread else None
        queue = run_queue(self.owned, spread, studies)
        return build_tuner(self.owned, queue, callbacks=[] if studies is None else [SpreadTrials(queue)])

    def _fit_until_done(self, workers: TuneWorkers, counter: Counter) -> None:
        """Fit Tuners until nothing is left. A Tuner that raises is followed by another one while there is progress."""
        from tuning.driver.hosts.tune_workers import NodeWatch, alive_nodes

        owned, halt = self.owned, workers.halt
        fruitless, attempt, failure = 0, 0, list[WorkerError]()
        left = len(owned.plan.studies)
        while left and fruitless < FRUITLESS_ATTEMPTS and not halt.wanted:
            before, attempt = self._parts_recorded(), attempt + 1
            try:
                with stdout_logged(), ready_workers():  # Tune announces itself there whatever its verbosity
                    self._fit(attempt, workers)
            except StorageError:
                raise
            except Exception as error:
                # One trial ended by Ray's memory monitor, or any exception in a callback, ends a whole Tuner.
                failure = [WorkerError(one_line(error), code_of(error))]
                logger.warning("Tune ended with %s; continuing from the records", failure[0].message)
            workers.kill()
            if halt.wanted:
                return
            left = RunResult(owned.directory).unfinished
            fruitless = 0 if self._parts_recorded() > before else fruitless + 1
            if left and not alive_nodes():
                workers.machines = NodeWatch(counter.lost_nodes)
                if self._own_ray:
                    end_ray()
                    start_ray(owned.plan)
            if left and fruitless and fruitless < FRUITLESS_ATTEMPTS:
                time.sleep(owned.timing.attempt_pause_s)
        if left and not halt.wanted:
            errors = [*counter.errors, *failure]
            full = any(each.code == code_of(DiskFullError()) for each in errors)
            raise (DiskFullError if full else MachineError)(
                f"{left} of {amount(len(owned.plan.studies), 'study')} could not be finished in {FRUITLESS_ATTEMPTS} "
                f"attempts without progress. Everything recorded is kept. Resume with: {owned.resume_advice()}",
                tuple(dict.fromkeys(each.message for each in errors)) or ("no reason was reported",),
            )

    def _fit(self, attempt: int, workers: TuneWorkers) -> None:
        from tuning.execution.bridge import SpreadTrials, handed_over

        spread = self._spread_run(partial(hand_on, workers.listener))
        with spread.opened() as studies:
            queue = run_queue(self.owned, spread, studies)
            of_spread = [] if studies is None else [SpreadTrials(queue)]
            with handed_over([*of_spread, workers]):
                build_tuner(self.owned, queue, attempt, workers).fit()

    def _spread_run(self, report: Listener) -> SpreadRun:
        """Return the spread studies of the run. report: receives each part that is written, and each error."""
        return SpreadRun(self.owned, WorkerRun.from_owned(self.owned), report, self._capacity)

    def _parts_recorded(self) -> int:
        """Return how many parts this owner's workers have written."""
        return len(list(self.owned.directory.list(self.owned.term.records)))


def _ignore(report: object) -> None:
    """Drop the reports to a Tuner that its caller fits."""


@contextlib.contextmanager
def head_watched(owned: OwnedRun, lost_nodes: Sequence[str]) -> Iterator[None]:
    """End this process with an error that says how to resume, should the head of its Ray end within the block.

    It is killed, for lack of memory too, or goes with its machine. Whoever asks it something then waits in Ray's C++
    code, which ends the process after a minute with words of its own, and no exception gets through there.

    lost_nodes: see `RunOutcome`; at that moment.
    """
    over = threading.Event()
    watcher = threading.Thread(target=_watch_head, args=(owned, over, lost_nodes), name="ray-head", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch_head(owned: OwnedRun, over: threading.Event, lost_nodes: Sequence[str]) -> None:
    cluster = os.environ.get("RAY_ADDRESS")
    heard = time.monotonic()
    while time.monotonic() - heard < (CLUSTER_S if cluster else OWN_S):
        if over.wait(LOOK_S):
            return
        if head_answers():
            heard = time.monotonic()
    kill_ray()
    what = f"the Ray cluster at {cluster}" if cluster else "this run's Ray (gcs_server)"
    error = HeadLostError(
        f"the head of {what} has ended: killed from outside, for lack of memory, or with its machine. Everything "
        f"recorded is kept. Resume with: {owned.resume_advice()}"
    )
    with contextlib.suppress(TuningError):
        end = RunEnd(EndState.FAILED, RunResult(owned.directory), error)
        write_outcome(owned, end, {}, lost_nodes)
    owned.lease.release()
    threading.excepthook(threading.ExceptHookArgs((HeadLostError, error, None, threading.current_thread())))
    os._exit(1)
