"""What the environment tells a process that is started here: how many threads it has, and where it imports from."""

from __future__ import annotations

import os
import sys

# Numerical libraries read them when they are loaded.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def thread_environment(count: int) -> dict[str, str]:
    """Variables by which libraries that are loaded from then on start so many threads."""
    return dict.fromkeys(_THREADS, str(count))


def import_environment() -> dict[str, str]:
    """Variables by which a child process imports what this one does: the same paths in the same order."""
    paths = [path or os.getcwd() for path in sys.path]
    return {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
