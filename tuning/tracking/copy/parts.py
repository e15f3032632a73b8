"""Which parts there are to copy: all of a run that has ended, or those of a run that still goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from tuning.basics.timing import USUAL
from tuning.errors import StorageError
from tuning.records.lease import Heartbeat, last_heartbeat
from tuning.records.ownership import Term
from tuning.records.parts import POOL, STUDIES, TRIALS, accepted, kind_of, written
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.summary.summary import SUMMARY_FILE


class Parts(Protocol):
    """What a copy is made of."""

    @property
    def complete(self) -> bool:
        """True when no part will be added to those that `look` gave last."""

    @property
    def ending(self) -> bool:
        """True when the next look may be the last one, and somebody waits for it."""

    @property
    def abandoned(self) -> bool:
        """True when the run's owner has died: whoever resumes the run copies the rest."""

    def look(self) -> Iterable[str]:
        """The names of all parts that there are now, also of those that were there before. Raises `StorageError`."""

    def wait(self, seconds: float) -> None:
        """Let time pass, less when the run ends in the meantime."""


class GivenParts:
    """Parts that are all known."""

    complete = ending = True
    abandoned = False

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)

    def look(self) -> Sequence[str]:
        return self.names

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


class FollowedRun:
    """The parts of a term whose owner may still write more: one listing of its folder each time.

    ending: set from outside when the run has ended, by a process that knows it before the lease is released.
    dead_after_s: an owner whose lease stood still for so many seconds is dead.
    """

    def __init__(
        self,
        directory: RunDirectory,
        term: Term,
        ending: threading.Event | None = None,
        dead_after_s: float = USUAL.dead_after_s,
    ) -> None:
        self.directory = directory
        self.term = term
        self.complete = False
        self._ending = ending or threading.Event()
        self._dead_after_s = dead_after_s
        self._beat = Heartbeat()
        self._moved = time.monotonic()  # when the owner's counter was last seen to have changed

    @property
    def ending(self) -> bool:
        return self._ending.is_set()

    @property
    def abandoned(self) -> bool:
        if self._beat.released or not self._looks_dead:
            return False
        try:
            self._look_at_owner()  # it may have counted or let go since the last look: a batch can take long
        except StorageError:
            return self.term.owner.is_dead
        return not self._beat.released and self._looks_dead

    @property
    def _looks_dead(self) -> bool:
        return self.term.owner.is_dead or time.monotonic() - self._moved >= self._dead_after_s

    def look(self) -> list[str]:
        ended = self._ending.is_set()
        self._look_at_owner()  # first: what it wrote before it let go is then in the listing
        self.complete = ended or self._beat.released
        return parts_of(self.directory, self.term, summary=self.complete)

    def wait(self, seconds: float) -> None:
        if self.complete:
            time.sleep(seconds)
        else:
            self._ending.wait(seconds)

    def _look_at_owner(self) -> None:
        beat = last_heartbeat(self.directory, self.term)
        if beat.counter != self._beat.counter:
            self._moved = time.monotonic()
        self._beat = beat


def parts_of(directory: RunDirectory, term: Term, *, summary: bool) -> list[str]:
    """Names of the parts that MLflow gets, in the order in which they were written.

    summary: with the one that sums up the run, when it is there.
    """
    names = [part for part in accepted(directory, term) if kind_of(part) in (POOL, TRIALS, STUDIES)]
    names.sort(key=written)  # trials just before their studies: else all of these would wait in memory for those
    if summary and directory.exists(SUMMARY_FILE):
        names.append(SUMMARY_FILE)
    return names
