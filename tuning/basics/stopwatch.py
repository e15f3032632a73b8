"""How long a piece of work takes."""

from __future__ import annotations

import time


class Clock:
    """Wall and CPU seconds of this thread since it was made."""

    def __init__(self) -> None:
        self.started, self._wall, self._cpu = time.time(), time.perf_counter(), time.thread_time()

    @property
    def wall(self) -> float:
        return time.perf_counter() - self._wall

    @property
    def cpu(self) -> float:
        return time.thread_time() - self._cpu
