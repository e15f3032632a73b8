"""The lease: the owner increments a counter in a file; others take over once it stops.

No clock of one machine is compared with another's: an owner is dead when its counter stood still for
`Timing.dead_after_s` on the observer's own monotonic clock, or when its process has ended on the observer's machine.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tuning.basics.timing import USUAL, Timing
from tuning.basics.wording import resume_advice
from tuning.errors import RunOwnedError, StorageError
from tuning.records.ownership import Term, claim_file, terms
from tuning.storage.run_directory import RunDirectory

logger = logging.getLogger(__name__)

_HELD: set[str] = set()  # folders of the terms that this process is running


@dataclass(frozen=True)
class Heartbeat:
    """What stands in the lease: how often its owner has counted, seconds since it began, whether it has let go."""

    counter: int = 0
    seconds: float = 0.0
    released: bool = False


class Lease:
    """Held by the owner of a term while it works; a context manager that lets go of it at the end.

    taken_by: who has taken the run over, once the owner finds that out (it was believed dead); it must stop then.
    gone: whether somebody has deleted the run, as far as the owner knows; it must stop then, too.
    """

    def __init__(self, directory: RunDirectory, term: Term, timing: Timing = USUAL) -> None:
        self.directory = directory
        self.term = term
        self.taken_by = ""
        self.gone = False
        self._interval = timing.heartbeat_s
        self._counter = 0
        self._start = time.monotonic()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._count, name="tuning-lease", daemon=True)

    def hold(self) -> Lease:
        """Begin to count."""
        _HELD.add(self.term.folder)
        self._beat()
        self._thread.start()
        return self

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    @property
    def seconds(self) -> float:
        """Since the lease was taken."""
        return time.monotonic() - self._start

    def release(self) -> None:
        """Let go: the next owner need not wait. Never raises."""
        if self.term.folder not in _HELD:
            return
        _HELD.discard(self.term.folder)
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
        self._look()
        self._beat(released=True)

    def _count(self) -> None:
        while not self._ending.wait(self._interval):
            self._look()
            self._beat()

    def _beat(self, released: bool = False) -> None:
        if self.gone:  # else a part of the folder would be made anew
            return
        self._counter += 1
        content = {"counter": self._counter, "seconds": round(self.seconds, 3), "released": released}
        try:
            self.directory.write(self.term.lease, json.dumps(content).encode())
        except StorageError as error:  # the storage may come back; until then others may believe us dead
            logger.warning("the lease could not be renewed: %s", error)

    def _look(self) -> None:
        try:
            self.gone = not self.directory.exists(claim_file(self.term.number))
            if self.directory.exists(claim_file(self.term.number + 1)):
                self.taken_by = str(next(terms(self.directory)).owner)
        except Exception as error:
            logger.warning("the lease could not be checked: %s", error)


def last_heartbeat(directory: RunDirectory, term: Term) -> Heartbeat:
    """What the owner of a term wrote last."""
    try:
        return Heartbeat(**json.loads(directory.read(term.lease)))
    except (OSError, ValueError, TypeError):
        return Heartbeat()  # it died between claiming the run and its first beat, or is just writing


def wait_until_dead(
    directory: RunDirectory,
    term: Term,
    timing: Timing = USUAL,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return when the owner of a term has let go or is dead; `RunOwnedError` as soon as it shows life."""
    if term.folder in _HELD:
        raise RunOwnedError(f"{directory.shown} is already being run by this very process.")
    first = last_heartbeat(directory, term)
    if first.released or term.owner.here or term.owner.is_dead:
        return
    logger.warning(
        "%s is owned by %s. Taking over in %g s unless its heartbeat continues.",
        directory.shown,
        term.owner,
        timing.dead_after_s,
    )
    until = clock() + timing.dead_after_s
    while clock() < until:
        sleep(timing.look_s)
        beat = last_heartbeat(directory, term)
        if beat.released or term.owner.is_dead:
            return
        if beat.counter != first.counter:
            raise RunOwnedError(
                f"{directory.shown} is being run by {term.owner}, which is alive. Wait for it to finish, or stop "
                f"it (Ctrl-C there, or kill {term.owner.pid} on {term.owner.host}); then: "
                f"{resume_advice(directory.shown)}"
            )
