"""How large the directories of runs are, for the quota of storage; a child process looks, as storage may not answer::

python -m tuning.service.supervisor.sizes RUN_DIRECTORY
"""

from __future__ import annotations

import logging
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from tuning.basics.environment import import_environment
from tuning.errors import ServiceError
from tuning.storage.run_directory import RunDirectory

if TYPE_CHECKING:  # the child needs no database
    from tuning.service.database.runs import SubmittedRun
    from tuning.service.settings import ServiceSettings

logger = logging.getLogger(__name__)

ANSWERS_S = 300.0


class Sizes:
    """Measures the directories of runs that have ended, of teams that have such a quota, one after the other.

    note: is told a run's id and its bytes.
    """

    def __init__(self, settings: ServiceSettings, note: Callable[[str, int], None]) -> None:
        self._settings, self._note = settings, note
        self._waiting: queue.Queue[SubmittedRun] = queue.Queue()
        self._thread: threading.Thread | None = None

    def measure(self, run: SubmittedRun) -> None:
        """Measure a run's directory soon; waits for nothing."""
        if self._settings.team(run.team).quotas.storage_gb is None:
            return
        self._waiting.put(run)
        if self._thread is None:
            self._thread = threading.Thread(target=self._measure_all, name="sizes", daemon=True)
            self._thread.start()

    def _measure_all(self) -> None:
        while True:
            run = self._waiting.get()
            found = _measured(run.run_directory)
            try:
                if found is not None:
                    self._note(run.id, found)
            except ServiceError as error:
                logger.warning("the size of run %s is not kept: %s", run.id, error)


def _measured(run_directory: str) -> int | None:
    command = [sys.executable, "-m", "tuning.service.supervisor.sizes", run_directory]
    environment = {**os.environ, **import_environment()}
    try:
        answer = subprocess.run(  # noqa: S603  # this program's own command
            command, env=environment, capture_output=True, timeout=ANSWERS_S, check=True
        )
        return int(answer.stdout)
    except (subprocess.SubprocessError, ValueError, OSError) as error:
        logger.warning("the size of %s cannot be measured: %s", run_directory, error)
        return None


def main(run_directory: str) -> None:
    """Print the bytes of all files in a run's directory; 0 where there is none."""
    sys.stdout.write(f"{RunDirectory(run_directory).size()}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
