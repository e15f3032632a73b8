"""The environment of a process: variables for it and for those that it starts, and which packages are installed."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version

# Numerical libraries read them when they are loaded.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def thread_environment(count: int) -> dict[str, str]:
    """Variables by which libraries that are loaded from then on start so many threads."""
    return dict.fromkeys(_THREADS, str(count))


def import_environment() -> dict[str, str]:
    """Variables by which a child process imports what this one does: the same paths in the same order."""
    paths = [path or os.getcwd() for path in sys.path]
    return {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}


@contextlib.contextmanager
def environment_set(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the time of a `with` block; afterwards they are what they were before."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def installed_version(*names: str) -> str:
    """The version of a package, which may have several names; empty where none of them is installed."""
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            return version(name)
    return ""
