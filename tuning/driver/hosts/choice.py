"""Which hosts a run is given to, and in which order."""

from __future__ import annotations

from collections.abc import Iterator

from tuning.driver.hosts.base import Host
from tuning.driver.hosts.forks import ForkHost, may_fork
from tuning.driver.hosts.here import InProcessHost
from tuning.driver.hosts.ray import RayHost
from tuning.planning.plan_notes import check_own_machine
from tuning.runs.begin import OwnedRun


def hosts_of(owned: OwnedRun, *, in_process: bool) -> Iterator[Host]:
    """The hosts that a run is given to, one after the other as long as something is left.

    A run that may be forked begins in forks, which go on while Ray starts, and is through before that if it is small.

    in_process: the user wants the run in this process alone. `PlanError` where no host here could do it.
    """
    if in_process:
        yield InProcessHost(owned)
        return
    check_own_machine(owned.plan.spec.definition, owned.plan.studies, owned.plan.slots)
    ray = RayHost(owned)
    if may_fork(owned):
        yield ForkHost(owned, start_next=ray.start)
    yield ray
