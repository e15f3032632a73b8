"""The head of the Ray that a run works on has ended: killed, for lack of memory, or with its machine.

Whoever asks it something then waits in Ray's C++ code, which ends the process after a minute with words of its own. No
exception gets through there. So a thread ends the process before, with what a user has to know.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence

from tuning.driver.cluster import head_answers, kill_ray
from tuning.driver.ending import write_outcome
from tuning.errors import HeadLostError, TuningError
from tuning.runs.begin import OwnedRun
from tuning.runs.observer import EndState, RunEnd
from tuning.runs.results import RunResult

LOOK_S = 1.0
OWN_S, CLUSTER_S = 2.0, 40.0  # without an answer; that of a cluster may come back within the minute that Ray waits


@contextlib.contextmanager
def head_watched(owned: OwnedRun, lost_nodes: Sequence[str]) -> Iterator[None]:
    """Within it, this process ends with an error that says how to resume, should the head of its Ray have ended.

    lost_nodes: see `RunOutcome`; at that moment.
    """
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(owned, over, lost_nodes), name="ray-head", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(owned: OwnedRun, over: threading.Event, lost_nodes: Sequence[str]) -> None:
    cluster = os.environ.get("RAY_ADDRESS")
    heard = time.monotonic()
    while time.monotonic() - heard < (CLUSTER_S if cluster else OWN_S):
        if over.wait(LOOK_S):
            return
        if head_answers():
            heard = time.monotonic()
    kill_ray()
    what = f"the Ray cluster at {cluster}" if cluster else "this run's Ray (gcs_server)"
    error = HeadLostError(
        f"the head of {what} has ended: killed from outside, for lack of memory, or with its machine. Everything "
        f"recorded is kept. Resume with: {owned.resume_advice()}"
    )
    with contextlib.suppress(TuningError):
        end = RunEnd(EndState.FAILED, RunResult(owned.directory), error)
        write_outcome(owned, end, {}, lost_nodes)
    owned.lease.release()
    threading.excepthook(threading.ExceptHookArgs((HeadLostError, error, None, threading.current_thread())))
    os._exit(1)
