"""Whether drivers still say how far they are: by the progress that each writes into its run's directory.

A directory may be on storage that does not answer, so that it is read by a thread which nobody waits for.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuning.errors import TuningError
from tuning.runs.progress import read_progress
from tuning.service.database.runs import SubmittedRun

logger = logging.getLogger(__name__)

LOOK_S = 60.0  # between two looks
SILENT_S = 900.0  # a driver that has said how far it is, and then nothing for so long, hangs


@dataclass
class _Word:
    """What a driver has said last, since when, and whether it has said anything since it was looked at first."""

    updated: str | None
    since: float
    reported: bool


class ProgressWatchdog:
    """Looks at the progress of the runs that work. clock: seconds that only go forward."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._words: dict[tuple[str, float | None], _Word] = {}
        self._looked = clock()
        self._thread: threading.Thread | None = None

    def look(self, working: Sequence[SubmittedRun]) -> None:
        """Begin to read the progress of these runs, where it is time for that; waits for nothing."""
        if self._clock() - self._looked < LOOK_S or (self._thread is not None and self._thread.is_alive()):
            return
        self._looked = self._clock()
        self._thread = threading.Thread(target=self.read, args=(working,), name="silence", daemon=True)
        self._thread.start()

    def read(self, working: Sequence[SubmittedRun]) -> None:
        """Read the progress of these runs, and forget all others."""
        words: dict[tuple[str, float | None], _Word] = {}
        for run in working:
            key = run.id, run.started
            before = self._words.get(key)
            try:
                progress = read_progress(run.run_directory)
                updated = None if progress is None else progress.updated
            except TuningError as error:
                logger.warning("the progress of run %s cannot be read: %s", run.id, error)
                updated = None if before is None else before.updated
            if before is not None and before.updated == updated:
                words[key] = before
            else:
                words[key] = _Word(updated, self._clock(), reported=before is not None)
        self._words = words

    def hangs(self, run: SubmittedRun) -> bool:
        """Whether a driver has said how far it is, and then nothing for too long. Before its first word it may read
        millions of customers."""
        word = self._words.get((run.id, run.started))
        return word is not None and word.reported and self._clock() - word.since >= SILENT_S
