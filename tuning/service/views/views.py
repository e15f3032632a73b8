"""Which tables of a run are shown: those that there are, until a child process has written newer ones."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path

from tuning.errors import MissingError, QuotaError, RunError, TuningError
from tuning.service.children import ChildLimits, ChildQueue, run_child, run_variable
from tuning.service.database.runs import SubmittedRun
from tuning.service.names import AS_THEY_ARE, Names
from tuning.service.states import WORKING
from tuning.service.views.tables import SUMMARY_FILE, RunTables

FRESH_S = 10.0  # tables of a run that goes on are at most so old, where somebody looks
OPEN_RUNS = 100  # whose files stay mapped
AT_ONCE = 2  # children that write tables, of all teams: each may take the memory that one may
MOST_OPEN = 8  # runs of a team whose tables are being written, or wait for that
LIMITS = ChildLimits(seconds=600.0)

#: Writes the tables of a run into a folder that is there; a `TuningError` says why not.
Writer = Callable[[SubmittedRun, Path], None]


def write_in_child(run: SubmittedRun, folder: Path) -> None:
    """A `Writer`. `RunError` with the child's sentence."""
    arguments = [run.run_directory, str(folder)]
    end = run_child("tuning.service.views.write_child", arguments, run_variable(run.id), LIMITS)
    if end.code:
        raise RunError(end.reason)


@dataclass(frozen=True)
class ShownTables:
    """Tables, and when they were written, in seconds since 1970."""

    tables: RunTables
    written: float


class Views:
    """The tables of all runs, below a folder of the service.

    work: its folder, with one per run. write: starts a child process, and waits for it. names: those that a run's team
    has. Safe for threads.
    """

    def __init__(
        self,
        work: Path,
        write: Writer,
        clock: Callable[[], float] = time.time,
        names: Callable[[SubmittedRun], Names] = lambda _: AS_THEY_ARE,
    ) -> None:
        self._work, self._write, self._clock, self._names = work, write, clock, names
        self._shown = OrderedDict[str, ShownTables]()  # the one that was looked at last is the last
        self._being_written = dict[str, tuple[Future[ShownTables], float]]()  # and when each has begun
        self._queue = ChildQueue("tables of runs", AT_ONCE, MOST_OPEN)
        self._lock = threading.Lock()

    def of(self, run: SubmittedRun) -> ShownTables:
        """What `ask` gives, waited for."""
        return self.ask(run).result()

    def ask(self, run: SubmittedRun) -> Future[ShownTables]:
        """A run's tables. While it works, those that there are, and newer ones are begun where they are too old.

        The first ones, and those of a run that has ended, are to be waited for. `MissingError` before it has recorded
        anything; `QuotaError` at once where many of its team are being written.
        """
        shown = self._newest(run)
        if shown is not None and not self._too_old(shown, run):
            return _known(shown)
        if shown is None or run.state not in WORKING:
            return self._begin(run)
        with contextlib.suppress(QuotaError):
            self._begin(run)
        return _known(shown)

    def close(self) -> None:
        """Begin no further ones."""
        self._queue.close()

    def forget(self, run: str) -> None:
        """Delete a run's tables."""
        with self._lock:
            self._shown.pop(run, None)
        shutil.rmtree(self._folder(run), ignore_errors=True)

    def _too_old(self, shown: ShownTables, run: SubmittedRun) -> bool:
        if run.state in WORKING:
            return self._clock() - shown.written > FRESH_S
        return run.ended is not None and shown.written < run.ended

    def _newest(self, run: SubmittedRun) -> ShownTables | None:
        with self._lock:
            shown = self._shown.get(run.id)
            if shown is not None:
                self._shown.move_to_end(run.id)
                return shown
        folders = sorted(self._folder(run.id).glob(f"*/{SUMMARY_FILE}"), key=lambda file: int(file.parent.name))
        tables = RunTables(folders[-1].parent, self._names(run)) if folders else None
        return self._keep(run.id, tables) if tables is not None and tables.current else None

    def _keep(self, run: str, tables: RunTables) -> ShownTables:
        shown = ShownTables(tables, int(tables.folder.name) / 1e6)
        with self._lock:
            self._shown[run] = shown
            self._shown.move_to_end(run)
            while len(self._shown) > OPEN_RUNS:
                self._shown.popitem(last=False)
        return shown

    def _begin(self, run: SubmittedRun) -> Future[ShownTables]:
        """One child process at a time writes the tables of a run, whoever looks.

        One that has begun before the run's end may lack what was recorded last: another one follows it.
        """
        with self._lock:
            before, begun = self._being_written.get(run.id, (None, self._clock()))
            if before is not None and (run.ended is None or begun >= run.ended):
                return before
            begun = self._clock()
            writing = self._queue.submit(run.team, lambda: self._write_new(run, begun, before))
            self._being_written[run.id] = writing, begun
        return writing

    def _write_new(self, run: SubmittedRun, begun: float, before: Future[ShownTables] | None) -> ShownTables:
        if before is not None:
            wait([before])
        # Named after the moment before they are read: what is recorded meanwhile may be missing.
        folder = self._folder(run.id) / str(int(self._clock() * 1e6))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._write(run, folder)
            found = self._keep(run.id, RunTables(folder, self._names(run)))
            for older in self._folder(run.id).iterdir():
                if older != folder:
                    shutil.rmtree(older, ignore_errors=True)  # who has them mapped can still read them
            return found
        except (TuningError, OSError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # of a run that was deleted meanwhile nothing is left
                folder.parent.rmdir()
                folder.parent.parent.rmdir()
            raise MissingError(f"run {run.id} has no tables: {self._names(run).text(str(error))}") from error
        finally:
            with self._lock:  # first: who is told of a failure may try again at once
                if self._being_written[run.id][1] == begun:
                    del self._being_written[run.id]

    def _folder(self, run: str) -> Path:
        return self._work / run / "views"


def _known(shown: ShownTables) -> Future[ShownTables]:
    future = Future[ShownTables]()
    future.set_result(shown)
    return future
