"""How many slots the server has: those of its settings, or of a Ray cluster, which is asked again and again.

A child process asks, as the server does not import Ray::

    RAY_ADDRESS=HOST:PORT python -m tuning.service.supervisor.slots
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable

from tuning.basics.environment import import_environment
from tuning.definition.cpus import cluster_nodes, usable_cpus
from tuning.service.settings import ServiceSettings

ASK_S = 15.0  # between two questions
ANSWERS_S = 60.0


class Slots:
    """Says how many slots there are; None before a cluster has said it, and after it has stopped answering.

    changed: called when a cluster has grown or lost a node. clock: seconds that only go forward.
    """

    def __init__(self, settings: ServiceSettings, changed: Callable[[], None], clock: Callable[[], float]) -> None:
        self._address, self._changed, self._clock = settings.ray_address, changed, clock
        self._most = settings.slots
        self._found = None if self._address else settings.slots or usable_cpus()
        self._asked: float | None = None
        self._thread: threading.Thread | None = None

    def __call__(self) -> int | None:
        return self._found

    def look(self) -> None:
        """Begin to ask a cluster again where it is time for that; waits for nothing."""
        if self._address is None or (self._thread is not None and self._thread.is_alive()):
            return
        if self._asked is None or self._clock() - self._asked >= ASK_S:
            self._asked = self._clock()
            self._thread = threading.Thread(target=self.ask, name="slots", daemon=True)
            self._thread.start()

    def ask(self) -> None:
        """Ask the cluster, and wait for its answer."""
        there = _asked_of(self._address or "")
        found = there if there is None or self._most is None else min(there, self._most)
        if found != self._found:
            self._found = found
            self._changed()


def _asked_of(address: str) -> int | None:
    command = [sys.executable, "-m", "tuning.service.supervisor.slots"]
    environment = {**os.environ, **import_environment(), "RAY_ADDRESS": address}
    try:
        answer = subprocess.run(  # noqa: S603  # this program's own command
            command, env=environment, capture_output=True, timeout=ANSWERS_S, check=True
        )
        return int(answer.stdout) or None
    except (subprocess.SubprocessError, ValueError, OSError):
        return None


def main() -> None:
    """Print the CPUs of the nodes that are alive at RAY_ADDRESS; 0 where none answers."""
    nodes = cluster_nodes(os.environ["RAY_ADDRESS"])
    sys.stdout.write(f"{int(sum(node.get('CPU', 0) for node in nodes))}\n")


if __name__ == "__main__":
    main()
