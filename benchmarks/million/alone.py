"""One command in a process of its own: seconds, CPU seconds and the most memory that it took."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.workload import ONE_THREAD

ENVIRONMENT = {**ONE_THREAD, "RAY_USAGE_STATS_ENABLED": "0", "MLFLOW_DISABLE_TELEMETRY": "true"}
# What a process took at most counts that of the process that it came from: this one is small.
_WATCHER = """
import json, resource, subprocess, sys, time
began = time.monotonic()
with open(sys.argv[1], "wb") as out, open(sys.argv[1] + ".err", "wb") as err:
    code = subprocess.call(sys.argv[2:], stdout=out, stderr=err)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


class CommandError(RuntimeError):
    """A command that was to be measured failed."""


@dataclass(frozen=True)
class Alone:
    """seconds: wall time, imports included. core_seconds: of all its processes. mb: resident at most, of one process.
    output: the file that holds what it printed.
    """

    seconds: float
    core_seconds: float
    mb: float
    output: Path


def python(*words: str) -> list[str]:
    """A command of this Python."""
    return [sys.executable, "-m", *words]


def environment() -> dict[str, str]:
    """One thread per library, and nobody told."""
    return {**os.environ, **ENVIRONMENT}


def alone(output: Path, *words: str, codes: tuple[int, ...] = (0,)) -> Alone:
    """Run `python -m words…` and measure it; `CommandError` for an exit code that is none of `codes`."""
    command = [sys.executable, "-c", _WATCHER, str(output), *python(*words)]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, check=True)
    code, seconds, core_seconds, mb = json.loads(done.stdout)
    if code not in codes:
        told = Path(f"{output}.err").read_text(errors="replace")[-2000:]
        raise CommandError(f"{' '.join(words)} ended with code {code}:\n{told}")
    return Alone(seconds, core_seconds, mb, output)


def stamp() -> str:
    """The time of day, for lines of progress."""
    return time.strftime("%H:%M:%S")
