"""How a driver is asked to end: SIGTERM, after 30 s again, after 60 s SIGKILL of all its processes."""

from __future__ import annotations

import signal
from collections.abc import Callable

from tuning.records.ownership import Owner
from tuning.service.supervisor.drivers import send

#: Seconds after the first look at a run that is to end, and the signal that is sent then. A driver answers the first by
#: writing what is finished, the second by ending its workers.
ORDERS = ((0.0, signal.SIGTERM), (30.0, signal.SIGTERM), (60.0, signal.SIGKILL))


class Stopping:
    """The runs that are to end, by claim, and what their drivers were sent.

    clock: seconds that only go forward: by the time of day, a clock that is set back would keep a run alive. A server
    that was started anew begins with the first signal again.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._asked: dict[str, tuple[float, int]] = {}  # since when, and how many orders were given

    def ask(self, run: str, driver: Owner) -> None:
        """Give a driver the orders that are due."""
        since, given = self._asked.get(run, (self._clock(), 0))
        for after, number in ORDERS[given:]:
            if self._clock() - since >= after:
                send(driver, number)
                given += 1
        self._asked[run] = since, given

    def forget(self, run: str) -> None:
        self._asked.pop(run, None)
