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
NOT_YET_S = 900.0  # one that has said nothing yet is told to be so; it may still read millions of customers


@dataclass
class _Word:
    """What a driver has said last, since when, and whether it has said anything since it was looked at first."""

    updated: str | None
    since: float
    reported: bool = False


class Silence:
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
            key, now = (run.id, run.started), self._clock()
            before = self._words.get(key)
            try:
                progress = read_progress(run.run_directory)
            except TuningError as error:
                logger.warning("the progress of run %s cannot be read: %s", run.id, error)
                words[key] = before or _Word(None, now)
                continue
            updated = None if progress is None else progress.updated
            if before is None:
                words[key] = _Word(updated, now)
            elif before.updated != updated:
                words[key] = _Word(updated, now, reported=True)
            else:
                words[key] = before
        self._words = words

    def hangs(self, run: SubmittedRun) -> bool:
        """Whether a driver has said how far it is, and then nothing for too long."""
        word = self._words.get((run.id, run.started))
        return word is not None and word.reported and self._clock() - word.since >= SILENT_S

    def has_said_nothing(self, run: SubmittedRun) -> bool:
        """Whether a driver has not said anything for so long that somebody should know."""
        word = self._words.get((run.id, run.started))
        return word is not None and not word.reported and self._clock() - word.since >= NOT_YET_S
