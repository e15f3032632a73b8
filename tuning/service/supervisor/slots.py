"""How many slots the server has: those of its settings, or of a Ray cluster, which is asked again and again."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from tuning.definition.cpus import usable_cpus
from tuning.errors import RunError
from tuning.service.children import ChildLimits, Children, Kind
from tuning.service.settings import ServiceSettings

KIND = Kind("slots", at_once=1, most_open=1)
LIMITS = ChildLimits(seconds=60.0)
ASK_S = 15.0  # between two questions


class Slots:
    """Says how many slots there are; None before a cluster has said it, and after it has stopped answering.

    changed: called when a cluster has grown or lost a node. clock: seconds that only go forward.
    """

    def __init__(
        self, settings: ServiceSettings, children: Children, changed: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        self._address, self._children, self._changed, self._clock = settings.ray_address, children, changed, clock
        self._most = settings.slots
        self._found = None if self._address else settings.slots or usable_cpus()
        self._asked = -ASK_S
        self._asking: Future[None] | None = None

    def __call__(self) -> int | None:
        return self._found

    def look(self) -> None:
        """Begin to ask a cluster again where it is time for that; waits for nothing."""
        asking = self._asking is not None and not self._asking.done()
        if self._address is not None and not asking and self._clock() - self._asked >= ASK_S:
            self._asked = self._clock()
            self._asking = self._children.submit(KIND, "", self.ask)

    def ask(self) -> None:
        """Ask the cluster, and wait for its answer; the server itself does not import Ray."""
        values, environment = {"address": self._address}, {"RAY_ADDRESS": self._address or ""}
        try:
            there = self._children.run(
                "tuning.service.child:cluster_slots", values, environment=environment, limits=LIMITS
            )
        except RunError:
            there = None
        found = min(there, self._most or there) if isinstance(there, int) and there else None
        if found != self._found:
            self._found = found
            self._changed()
