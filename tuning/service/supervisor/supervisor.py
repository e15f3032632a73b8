"""The supervisor: a thread that starts what is next, asks drivers to end, and notes what came of them.

It keeps nothing that the database and the folders of the runs do not hold: one that was killed is followed by another,
which finds the drivers that go on.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from tuning.basics.wording import duration, one_line
from tuning.errors import FULL, TuningError, UnavailableError, code_of
from tuning.service.admission import check_again
from tuning.service.children import Children, Kind
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs, Submission, SubmittedRun, change, one
from tuning.service.queue.claim import claim
from tuning.service.requests import Requests
from tuning.service.schedules import Schedules
from tuning.service.settings import ServiceSettings
from tuning.service.states import WORKING, RunState
from tuning.service.supervisor.drivers import STARTING, Drivers, Gone, Stopping, search_command, send
from tuning.service.supervisor.endings import WRONG, next_state
from tuning.service.supervisor.outages import Outages
from tuning.service.supervisor.progress_watchdog import SILENT_S, ProgressWatchdog
from tuning.service.supervisor.slots import Slots

logger = logging.getLogger(__name__)

BUSY_S, IDLE_S = 0.25, 2.0  # between two looks while a run works, and while none does
SIZES = Kind("sizes of runs", at_once=1, most_open=10**9)
STUCK_S = 60.0  # a look that takes longer is told


class Supervisor:
    """Looks after the runs of one server.

    clock: seconds since 1970. monotonic: seconds that only go forward. command: what the driver of a run is.

    Attributes:
        slots: says how many there are.
        requests: what may be asked of it.
        watchdog: whether its drivers still say how far they are.
    """

    def __init__(
        self,
        database: Database,
        settings: ServiceSettings,
        children: Children,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        command: Callable[[SubmittedRun], Sequence[str]] = search_command,
    ) -> None:
        self._database, self._settings, self._clock, self._monotonic = database, settings, clock, monotonic
        self._runs, self._schedules = Runs(database), Schedules(database)
        self._drivers = Drivers(settings, command)
        self._stopping, self._outages = Stopping(monotonic), Outages(monotonic)
        self.watchdog = ProgressWatchdog(monotonic)
        self._children = children
        self.slots = Slots(settings, children, self.wake, monotonic)
        self.requests = Requests(database, settings, self.slots)
        self._news, self._over = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._problem: str | None = None
        self._looked, self._busy = monotonic(), False
        self._killed: dict[str, str] = {}  # why drivers were killed from here, by run
        self._unseen = set[str]()  # runs with drivers that could not be looked at

    def start(self) -> None:
        """Look after the runs, in a thread, until `close`."""
        self._thread = threading.Thread(target=self._work, name="supervisor", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look at once: something was asked for."""
        self._news.set()

    def close(self) -> None:
        """Look no more; the drivers go on."""
        self._over.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join()

    def unhealthy_reason(self) -> str | None:
        """Why the runs are not looked after at the moment, for anybody; None while they are."""
        if self._problem is not None:
            return "The runs cannot be looked after; the server's log says why."
        if hold := self._outages.hold():
            return hold
        if self._monotonic() - self._looked > STUCK_S:
            return f"The runs were looked at {duration(self._monotonic() - self._looked)} ago."
        return "The Ray cluster does not answer, so no run begins." if self.slots() is None else None

    def look(self) -> None:
        """Do all that is to be done now. `UnavailableError` while the database cannot be used."""
        working = self._runs.in_states(WORKING)
        self._busy = bool(working)
        for run in working:
            self._look_at(run)
        self.watchdog.look(working)
        self.slots.look()
        self._schedules.submit_due(self._submit_again, self._clock())
        while not (self._over.is_set() or self._outages.hold()):
            total = self.slots()
            begun = None if total is None else claim(self._database, self._settings, total, self._clock())
            if begun is None:
                if not working:
                    self._outages.over()
                return
            self._busy = True
            self._outages.note_start(begun.id)
            self._begin(begun)

    def _work(self) -> None:
        while not self._over.is_set():
            self._news.clear()
            try:
                self.look()
            except UnavailableError as error:
                self._tell(str(error))
            except Exception as error:
                self._tell(f"the runs cannot be looked after: {one_line(error)}")
                logger.debug("the supervisor has failed", exc_info=True)
            else:
                self._problem = None
            self._looked = self._monotonic()
            self._news.wait(BUSY_S if self._busy and self._problem is None else IDLE_S)

    def _tell(self, problem: str) -> None:
        if problem != self._problem:
            logger.warning("%s", problem)
        self._problem = problem

    def _submit_again(self, submission: Submission, now: float) -> None:
        """What a schedule submits: its team may have lost a root or a listing since the definition was admitted."""
        check_again(submission.definition, submission.team, self._settings)
        self.requests.submit(submission, now)

    def _begin(self, run: SubmittedRun) -> None:
        """Start a driver, unless the team may no longer run this: the settings may have changed since it was queued."""
        try:
            check_again(run.definition, run.team, self._settings)
        except Exception as error:  # also of a row that cannot be used, which keeps no other run from its beginning
            self._end(run, Gone(WRONG[0], str(error) if isinstance(error, TuningError) else one_line(error)))
            return
        try:
            self._drivers.start(run)
        except OSError as error:
            code = code_of(error) if error.errno in FULL else "not_started"
            self._end(run, Gone(None, f"its process could not be started: {one_line(error)}", {"code": code}))

    def _look_at(self, run: SubmittedRun) -> None:
        try:
            found = self._drivers.look(run)
        except Exception as error:  # such as too many open files; the run may be well
            if run.id not in self._unseen:
                logger.warning("run %s cannot be looked at: %s", run.id, one_line(error))
            self._unseen.add(run.id)
            return
        self._unseen.discard(run.id)
        if found is None:
            self._begin(run)
        elif isinstance(found, Gone):
            self._end(run, replace(found, reason=found.reason or self._killed.pop(run.id, "")))
        elif found is STARTING:
            return
        elif run.state is RunState.STOPPING:
            self._stopping.ask(run.id, found)
        elif self.watchdog.hangs(run):
            self._killed[run.id] = f"its process said nothing for {duration(SILENT_S)} and was killed"
            send(found, signal.SIGKILL)

    def _end(self, run: SubmittedRun, gone: Gone) -> None:
        """Note what came of a driver, whatever was asked of its run in the meantime."""
        now = self._clock()
        with self._database.write() as connection:
            current = one(connection, run.id, None)
            if current.state not in WORKING or current.started != run.started:
                return
            after = next_state(current, gone, self._settings, now, self._outages)
            changed = change(connection, current, after.to, now, after.reason, **after.values)
        self._outages.ended(run.id)
        self._stopping.forget(run.id)
        if self._settings.team(run.team).quotas.storage_gb is not None:
            self._children.submit(SIZES, "", lambda: self._measure(changed))

    def _measure(self, run: SubmittedRun) -> None:
        """Note the size of a run's directory for the quota of storage; a child looks, as storage may not answer."""
        try:
            size = self._children.run("tuning.service.child:size", {"run": run.run_directory}, environment={})
            self._runs.note(run.id, bytes=size)
        except TuningError as error:
            logger.warning("the size of run %s is not known: %s", run.id, error)
