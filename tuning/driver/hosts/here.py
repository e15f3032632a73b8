"""This process as a host: one study after the other, so that a debugger stops in a user's own code."""

from __future__ import annotations

import contextlib

from tuning.driver.halt import StopConditions
from tuning.driver.hosts.base import POOLING, HostStoppedError
from tuning.driver.progress import Counter
from tuning.execution.context import WorkerRun
from tuning.execution.packed import work_shard
from tuning.execution.reports import WorkerReport
from tuning.records.parts import POOL_SHARD
from tuning.runs.begin import OwnedRun
from tuning.user_code import exits_raised


class InProcessHost:
    """Works all shards in this process. A crash of a trial is a crash of the run."""

    def __init__(self, owned: OwnedRun) -> None:
        self.owned = owned

    def work(self, counter: Counter, halt: StopConditions) -> bool:
        """As of `Host`."""

        def report(result: WorkerReport) -> None:
            counter(result)
            if halt.wanted:
                raise HostStoppedError

        owned = self.owned
        # No other slot writes beside this one.
        run = WorkerRun.of(owned, owned.timing.of_run(0, len(owned.plan.studies)))
        with contextlib.suppress(HostStoppedError), exits_raised():
            if owned.pool_is_due:
                counter.doing = POOLING
                work_shard(run, POOL_SHARD, report)
            for shard in range(len(owned.plan.shards)):
                work_shard(run, shard, report)
        return False
