"""A shared outage, such as a full disk, is one event: runs that it fails hold the queue and lose no try by it.

It begins when a second run fails with the same code. One run at a time is then tried; when one works, all go on.
"""

from __future__ import annotations

from collections.abc import Callable

from tuning.basics.wording import duration

#: The codes of what all runs need, and what that is.
SHARED = {
    "disk_full": "the disk of the runs is full",
    "storage": "the storage of the runs fails",
    "ray_unavailable": "Ray does not start",
    "head_lost": "the head of Ray was lost",
    "not_started": "no process can be started",
}
PAUSES_S = (10.0, 60.0, 300.0)  # before each try; the last one again and again
RECENT_S = 3600.0  # for which it is remembered that a run has failed
WORKS_S = 60.0  # after which a run that is tried works


class Outages:
    """Whether runs may begin. clock: seconds that only go forward.

    After a start of the server the first run that fails counts as the first again.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failed: dict[str, tuple[str, float]] = {}  # the code and the time, by run
        self._code, self._tries, self._next = "", 0, 0.0
        self._tried: tuple[str, float] | None = None  # the run that shows whether it is over, and since when

    def failed(self, run: str, code: str) -> bool:
        """Note that a run's machine has failed; True where it is a shared outage, and not the run's own matter."""
        now = self._clock()
        self._failed = {each: known for each, known in self._failed.items() if now - known[1] < RECENT_S}
        alike = any(each != run and known == code for each, (known, _) in self._failed.items())
        self._failed[run] = code, now
        if code not in SHARED or not alike:
            return False
        if not self._code or self._is_tried(run):
            self._tries = self._tries + 1 if self._code else 0
            self._code, self._next, self._tried = code, now + PAUSES_S[min(self._tries, len(PAUSES_S) - 1)], None
        return True

    def ended(self, run: str) -> None:
        """A run has ended in another way than by the outage."""
        if self._is_tried(run):
            self._code, self._tried = "", None

    def note_start(self, run: str) -> None:
        """A run has begun; in an outage it shows whether that is over."""
        if self._code:
            self._tried = run, self._clock()

    def over(self) -> None:
        """Nobody waits, so that nobody can be tried."""
        self._code = ""

    def hold(self) -> str:
        """Why no run may begin now; empty where one may."""
        now = self._clock()
        if self._tried is not None and now - self._tried[1] >= WORKS_S:
            self.ended(self._tried[0])
        if not self._code or (self._tried is None and now >= self._next):
            return ""
        when = "is tried now" if self._tried else f"is tried again in {duration(self._next - now)}"
        return f"The queue waits, as runs have failed alike: {SHARED[self._code]}. One of them {when}."

    def _is_tried(self, run: str) -> bool:
        return self._tried is not None and self._tried[0] == run
