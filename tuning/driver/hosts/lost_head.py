"""The head of a run's own Ray has ended: killed from outside, or for lack of memory.

Whoever asks it something then waits in Ray's C++ code, which ends the process after a minute with words of its own. No
exception gets through there. So a thread ends the process, with what a user has to know.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from tuning.driver.cluster import head_lost, kill_ray
from tuning.runs.begin import OwnedRun

LOOK_S = 1.0


@contextlib.contextmanager
def head_watched(owned: OwnedRun) -> Iterator[None]:
    """Within it, this process ends with an error that says how to resume, should the head of its Ray have ended."""
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(owned, over), name="ray-head", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(owned: OwnedRun, over: threading.Event) -> None:
    while not over.wait(LOOK_S):
        if head_lost():
            break
    else:
        return
    kill_ray()
    owned.lease.release()
    print(  # noqa: T201  # nobody else can say it
        "\nerror: the head of this run's Ray (gcs_server) has ended: killed from outside, or for lack of memory. "
        f"Everything recorded is kept. Resume with: {owned.resume_advice()}",
        file=sys.stderr,
        flush=True,
    )
    os._exit(1)
