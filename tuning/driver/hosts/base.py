"""Places where the studies of a run are worked: the contract that every host keeps, and what ends its work early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tuning.driver.signals import Signals
from tuning.records.lease import Lease
from tuning.runs.progress import Counter

POOLING = "training the pool"  # what `Progress.doing` says then


@dataclass
class StopConditions:
    """The conditions under which a run stops. A host asks for them again and again.

    Attributes:
        lease: of the run's owner, which is this process.
        signals: what the user wants.
        seconds: the run may still take; None without a limit.
        broken: why workers cannot work; empty while they can.
    """

    lease: Lease
    signals: Signals
    seconds: float | None = None
    broken: str = ""

    @property
    def interrupted(self) -> int:
        """The number of the signal that wants the run to stop; 0 without one."""
        return self.signals.received

    @property
    def used_up(self) -> bool:
        """Whether the run has had its time."""
        return self.seconds is not None and self.lease.seconds >= self.seconds

    @property
    def wanted(self) -> bool:
        """Whether the run should stop now."""
        return bool(self.interrupted or self.lease.taken_by or self.lease.gone or self.used_up or self.broken)


class Host(Protocol):
    """A place where the studies of a run are worked. It is made for one `OwnedRun`.

    A host may assume that this process holds the run's lease as long as `work` goes on, that the plan lists the studies
    that are left, and that the records of earlier hosts and owners can be read. It does nothing again that is recorded,
    so one host goes on where another has stopped.

    A host must

    - work `POOL_BATCH` before all else, in such a worker as it has for batches, as long as the run's `pool_is_due`;
    - write a result into the run's records first, and report it to the counter second;
    - let a crash of a worker cost the study that it worked on, and nobody else, unless the worker is this process; so
      it gives `work_batch` its `nodes`, and calls `forget` of `tuning.execution.crash_log` for a worker that it ends;
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
    """Leaves `work_batch` in a process that works batches itself: the run is to stop."""
