"""Runs one contender and writes its outcome; started by `benchmarks.measure`."""

from __future__ import annotations

import time

BEGAN = time.time()  # before any other import, so that they count

import ctypes
import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
PR_SET_PDEATHSIG = 1


def main(name: str, given: str, wanted: str) -> None:
    # Daemons that detach themselves stay in this process's tree, where their CPU time is counted.
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    from benchmarks.contenders import contenders
    from benchmarks.workload import ONE_THREAD, Scenario

    os.environ.update(ONE_THREAD)
    outcome = contenders()[name].run(Scenario.from_json(Path(given).read_text()))
    outcome.began = BEGAN
    Path(wanted).write_text(json.dumps(asdict(outcome)))


if __name__ == "__main__":
    main(*sys.argv[1:])
