"""Which hosts a run is given to, and in which order; and the host that is this process itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tuning.driver.hosts.base import POOLING, Host, HostStoppedError, StopConditions
from tuning.driver.hosts.forks import ForkHost, may_fork
from tuning.driver.hosts.ray import RayHost
from tuning.execution.packed import work_batch
from tuning.execution.reports import WorkerReport
from tuning.execution.worker import WorkerRun
from tuning.planning.plan_notes import check_own_machine
from tuning.records.parts import POOL_BATCH
from tuning.runs.begin import OwnedRun
from tuning.runs.progress import Counter
from tuning.user_code import exits_raised


def hosts_of(owned: OwnedRun, *, in_process: bool) -> Iterator[Host]:
    """Return the hosts that a run is given to, one after the other as long as something is left.

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


class InProcessHost:
    """Works one study after the other in this process, so that a debugger stops in a user's own code.

    A crash of a trial is a crash of the run.
    """

    def __init__(self, owned: OwnedRun) -> None:
        self.owned = owned

    def work(self, counter: Counter, halt: StopConditions) -> bool:
        """See `Host`."""

        def report(result: WorkerReport) -> None:
            counter(result)
            if halt.wanted:
                raise HostStoppedError

        owned = self.owned
        # There is no other slot that writes.
        run = WorkerRun.from_owned(owned, owned.timing.of_run(0, len(owned.plan.studies)))
        with contextlib.suppress(HostStoppedError), exits_raised():
            if owned.pool_is_due:
                counter.doing = POOLING
                work_batch(run, POOL_BATCH, report)
            for batch in range(len(owned.plan.batches)):
                work_batch(run, batch, report)
        return False
