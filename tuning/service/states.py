"""The states of a submitted run, and which may follow which."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class RunState(StrEnum):
    """Where a submitted run stands.

    queued: waits for slots, also between two tries. running: a process works on it. stopping: that process was asked
    to end. stopped: ended on request, can be resumed. finished: went through all customers. failed: cannot go on
    without somebody. cancelled: ended on request, for good.
    """

    QUEUED = "queued"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


#: Each state with those that may follow it; no other change is made, whoever asks.
CHANGES: Mapping[RunState, frozenset[RunState]] = {
    RunState.QUEUED: frozenset({RunState.RUNNING, RunState.STOPPED, RunState.CANCELLED, RunState.FAILED}),
    RunState.RUNNING: frozenset({RunState.STOPPING, RunState.QUEUED, RunState.FINISHED, RunState.FAILED}),
    RunState.STOPPING: frozenset({RunState.STOPPED, RunState.CANCELLED, RunState.FINISHED, RunState.FAILED}),
    RunState.STOPPED: frozenset({RunState.QUEUED, RunState.CANCELLED}),
    RunState.FINISHED: frozenset({RunState.QUEUED}),
    RunState.FAILED: frozenset({RunState.QUEUED, RunState.CANCELLED}),
    RunState.CANCELLED: frozenset(),
}

#: A process may be at work, so slots are taken.
WORKING = frozenset({RunState.RUNNING, RunState.STOPPING})
#: Nothing happens any more unless somebody asks for it.
ENDED = frozenset({RunState.STOPPED, RunState.FINISHED, RunState.FAILED, RunState.CANCELLED})
#: Before a run's last moment.
OPEN = frozenset(RunState) - ENDED
