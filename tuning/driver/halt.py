"""Why a run ends before its studies do: a signal, a budget that is used up, another owner, workers that cannot work."""

from __future__ import annotations

from dataclasses import dataclass

from tuning.driver.signals import Signals
from tuning.records.lease import Lease


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
