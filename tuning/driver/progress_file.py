"""The run's progress in its own folder, for whoever comes later or from elsewhere."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

from tuning.driver.progress import Counter
from tuning.errors import TuningError
from tuning.records.ownership import check_there
from tuning.runs.begin import OwnedRun
from tuning.runs.observer import EndState, RunEnd, RunObserver
from tuning.runs.progress import ProgressState, write_progress

logger = logging.getLogger(__name__)

ENDED: dict[EndState, ProgressState] = {
    EndState.DONE: "finished",
    EndState.SPENT: "spent",
    EndState.STOPPED: "stopped",
    EndState.KILLED: "stopped",
    EndState.FAILED: "failed",
}


class ProgressFile(RunObserver):
    """Writes the progress again and again, and at last how the run has ended.

    The last of a run's observers: what it says of the end is true of all that the others write.
    """

    def __init__(self, owned: OwnedRun, counter: Counter) -> None:
        self._owned, self._counter = owned, counter
        timing = owned.timing
        self._pause = timing.progress_s if owned.directory.local else timing.remote_progress_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write_on, name="tuning-progress", daemon=True)
        self._refused = False

    def began(self) -> None:
        self._thread.start()

    def ended(self, end: RunEnd) -> None:
        self._over.set()
        self._thread.join()
        if end.state in ENDED:
            self._write(ENDED[end.state])

    def _write_on(self) -> None:
        self._write()
        while not self._over.wait(self._pause):
            self._write()

    def _write(self, state: ProgressState | None = None) -> None:
        """state: how the run has ended; None while it goes on."""
        lease, directory = self._owned.lease, self._owned.directory
        if lease.taken_by or lease.gone:  # another owner writes its own
            return
        try:
            check_there(directory, self._owned.term)
            now = self._counter.now
            write_progress(directory, now if state is None else replace(now, state=state, seconds_left=None, doing=""))
        except TuningError as error:
            if not self._refused:
                logger.warning("the progress could not be written: %s", error)
            self._refused = True
        else:
            self._refused = False
