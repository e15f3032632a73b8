"""A place where the studies of a run are worked: the contract that every host keeps."""

from __future__ import annotations

from typing import Protocol

from tuning.driver.halt import StopConditions
from tuning.driver.progress import Counter

POOLING = "training the pool"  # as of `Progress`


class Host(Protocol):
    """A place where the studies of a run are worked. It is made for one `OwnedRun`.

    A host may assume that this process holds the run's lease as long as `work` goes on, that the plan lists the studies
    that are left, and that the records of earlier hosts and owners can be read. It does nothing again that is recorded,
    so one host goes on where another has stopped.

    A host must

    - work `POOL_SHARD` before all else, in such a worker as it has for shards, as long as the run's `pool_is_due`;
    - write a result into the run's records first, and report it to the counter second;
    - let a crash of a worker cost the study that it worked on, and nobody else, unless the worker is this process; so
      it gives `work_shard` its `nodes`, and calls `forget` of `tuning.execution.crash_log` for a worker that it ends;
    - let another process go on where one raises `WornOutError`, and give up, by `halt.broken` or a `RunError`, where
      workers die again and again and nothing is recorded;
    - look at `halt.wanted` after each report, and at least once a second while none comes; then begin nothing more, let
      workers write what they have finished, and return;
    - have `halt.signals.order` end its workers at once, and leave it None when it has none;
    - leave no worker at work when it returns or raises.
    """

    def work(self, counter: Counter, halt: StopConditions) -> bool:
        """Work until nothing is left, or `halt` wants it to stop; True where another host should go on.

        Args:
            counter: counts what workers report. Its `doing` says what takes its time before they do.
            halt: the conditions under which the run ends before its studies do.

        Raises:
            PlanError: no machine has what the run asks for; `RunSession` then removes a new run directory.
            RunError: workers or machines cannot go on; what is recorded is kept. StorageError: the storage cannot.
        """
        ...


class HostStoppedError(Exception):
    """Leaves `work_shard` in a process that works shards itself: the run is to stop."""
