"""The run's progress in its own folder, for whoever comes later or from elsewhere."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tuning.basics.documents import Json
from tuning.driver.progress import Counter
from tuning.errors import TuningError
from tuning.records.ownership import Term, check_there
from tuning.runs.begin import OwnedRun
from tuning.runs.exit_codes import failure, of_models, of_searches, outcome_of
from tuning.runs.observer import EndState, RunEnd, RunObserver
from tuning.runs.outcome_file import OUTCOME
from tuning.runs.plan_file import frozen_definition
from tuning.runs.progress import write_progress
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.copy.observer import MLflowCopy

logger = logging.getLogger(__name__)


class ProgressFile(RunObserver):
    """Writes the progress again and again, and at last how the run has ended.

    The last of a run's observers: what it says of the end is true of all that the others write.
    """

    def __init__(self, owned: OwnedRun, counter: Counter, copy: MLflowCopy) -> None:
        self._owned, self._counter, self._copy = owned, counter, copy
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
        self._write(end)

    def _write_on(self) -> None:
        self._write()
        while not self._over.wait(self._pause):
            self._write()

    def _write(self, end: RunEnd | None = None) -> None:
        """end: of the run; None while it goes on."""
        lease, directory = self._owned.lease, self._owned.directory
        if lease.taken_by or lease.gone:  # another owner writes its own
            return
        try:
            check_there(directory, self._owned.term)
            if end is None:
                write_progress(directory, self._counter.now)
            elif end.state is not EndState.LOST:
                write_progress(directory, replace(self._counter.now, state=end.state.word, seconds_left=None, doing=""))
                write_outcome(directory, self._owned.term, end, self._copy.not_copied, self._counter.lost_nodes)
        except TuningError as error:
            if not self._refused:
                logger.warning("the progress could not be written: %s", error)
            self._refused = True
        else:
            self._refused = False


def write_outcome(
    directory: RunDirectory, term: Term, end: RunEnd, not_copied: Mapping[str, int], lost_nodes: Sequence[str]
) -> None:
    """Say how a run has ended; nothing where it may not be written to any more."""
    if end.state is EndState.LOST:
        return
    counts: Json = {} if end.state is EndState.KILLED else {**end.result.summary()}
    if end.error is not None:
        why = failure(end.error)
    else:
        number = of_models(counts["customers"], counts["succeeded"])
        if frozen_definition(directory, term).compare is not None:
            number = of_searches(end.result.unfinished)
        code = "time_budget" if end.state is EndState.SPENT else "done"
        why = {"outcome": outcome_of(number), "exit_code": number, "code": code, "values": {}, "reason": ""}
    told = {"term": term.number, "state": end.state.word, **why, "not_copied": not_copied, "lost_nodes": lost_nodes}
    directory.write(OUTCOME, json.dumps({**counts, **told}, ensure_ascii=False).encode())
