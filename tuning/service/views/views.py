"""Which tables of a run are shown: those that there are, until a child process has written newer ones."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path

from tuning.errors import MissingError, QuotaError, TuningError
from tuning.service.children import ChildLimits, Children, Kind, run_variable
from tuning.service.database.runs import SubmittedRun
from tuning.service.names import Names
from tuning.service.settings import ServiceSettings
from tuning.service.states import WORKING
from tuning.service.views.tables import SUMMARY_FILE, RunTables

FRESH_S = 10.0  # tables of a run that goes on are at most so old, where somebody looks
OPEN_RUNS = 100  # with files that stay mapped
KIND = Kind("tables of runs", at_once=2, most_open=8)
LIMITS = ChildLimits(seconds=600.0)


class LeaderboardCache:
    """The tables of all runs, in a folder of each below the service's own. Safe for threads."""

    def __init__(self, settings: ServiceSettings, children: Children, clock: Callable[[], float] = time.time) -> None:
        self._settings, self._children, self._clock = settings, children, clock
        self._shown = OrderedDict[str, RunTables]()  # the one that was looked at last is the last
        self._being_written = dict[str, tuple[Future[RunTables], float]]()  # and when each has begun
        self._lock = threading.Lock()

    def ask(self, run: SubmittedRun) -> Future[RunTables]:
        """Return a run's tables: of a run that works those that there are, and newer ones are begun where they are old.

        The first ones, and those of a run that has ended, are to be waited for. `MissingError` before it has recorded
        anything; `QuotaError` at once where many of its team are being written.
        """
        if run.started is None:
            raise MissingError(f"run {run.id} has no tables: it has recorded nothing yet.")
        shown = self._newest(run)
        if shown is not None and not self._too_old(shown, run):
            return _known(shown)
        if shown is None or run.state not in WORKING:
            return self._begin(run)
        with contextlib.suppress(QuotaError):
            self._begin(run)
        return _known(shown)

    def forget(self, run: str) -> None:
        """Delete a run's tables."""
        with self._lock:
            self._shown.pop(run, None)
        shutil.rmtree(self._folder(run), ignore_errors=True)

    def _too_old(self, shown: RunTables, run: SubmittedRun) -> bool:
        if run.state in WORKING:
            return self._clock() - shown.written > FRESH_S
        return run.ended is not None and shown.written < run.ended

    def _newest(self, run: SubmittedRun) -> RunTables | None:
        with self._lock:
            shown = self._shown.get(run.id)
            if shown is not None:
                self._shown.move_to_end(run.id)
                return shown
        folders = sorted(self._folder(run.id).glob(f"*/{SUMMARY_FILE}"), key=lambda file: int(file.parent.name))
        shown = RunTables(folders[-1].parent, self._names(run)) if folders else None
        return self._keep(run.id, shown) if shown is not None and shown.current else None

    def _names(self, run: SubmittedRun) -> Names:
        return self._settings.names(run.team, run.run_directory)

    def _keep(self, run: str, shown: RunTables) -> RunTables:
        with self._lock:
            self._shown[run] = shown
            self._shown.move_to_end(run)
            while len(self._shown) > OPEN_RUNS:
                self._shown.popitem(last=False)
        return shown

    def _begin(self, run: SubmittedRun) -> Future[RunTables]:
        """One child process at a time writes the tables of a run, whoever looks.

        One that has begun before the run's end may lack what was recorded last: another one follows it.
        """
        with self._lock:
            before, begun = self._being_written.get(run.id, (None, self._clock()))
            if before is not None and (run.ended is None or begun >= run.ended):
                return before
            begun = self._clock()
            writing = self._children.submit(KIND, run.team, lambda: self._written(run, begun, before))
            self._being_written[run.id] = writing, begun
        return writing

    def _written(self, run: SubmittedRun, begun: float, before: Future[RunTables] | None) -> RunTables:
        if before is not None:
            wait([before])
        # Named after the moment before they are read: what is recorded meanwhile may be missing.
        folder = self._folder(run.id) / str(int(self._clock() * 1e6))
        names = self._names(run)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            values = {"run": run.run_directory, "folder": str(folder)}
            environment = run_variable(run.id)
            self._children.run(
                "tuning.service.views.write:write", values, environment=environment, limits=LIMITS, names=names
            )
            found = self._keep(run.id, RunTables(folder, names))
            for older in self._folder(run.id).iterdir():
                if older != folder:
                    shutil.rmtree(older, ignore_errors=True)  # who has them mapped can still read them
            return found
        except (TuningError, OSError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # of a run that was deleted meanwhile nothing is left
                folder.parent.rmdir()
                folder.parent.parent.rmdir()
            raise MissingError(f"run {run.id} has no tables: {names.text(str(error))}") from error
        finally:
            with self._lock:  # first: who is told of a failure may try again at once
                if self._being_written[run.id][1] == begun:
                    del self._being_written[run.id]

    def _folder(self, run: str) -> Path:
        return self._settings.work / run / "views"


def _known(shown: RunTables) -> Future[RunTables]:
    future = Future[RunTables]()
    future.set_result(shown)
    return future
