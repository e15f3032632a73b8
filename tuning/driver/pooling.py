"""The pool of a run, which has to be settled before its studies begin."""

from __future__ import annotations

import logging

from tuning.basics.wording import raised
from tuning.data.child_process import ChildProcess
from tuning.driver.halt import StopConditions
from tuning.driver.hosts.base import HostStoppedError
from tuning.driver.progress import Counter
from tuning.errors import NotLookedAtError, TuningError
from tuning.execution.context import WorkerRun
from tuning.execution.pool_training import train_pool
from tuning.models.pooled import RunPool
from tuning.planning.pool_notes import OFF, POOL_SECONDS, why_no_pool
from tuning.runs.begin import OwnedRun
from tuning.runs.pool_file import pool_settled, write_pool
from tuning.storage.run_directory import RunDirectory
from tuning.user_code import exits_raised

logger = logging.getLogger(__name__)


def settle_pool(owned: OwnedRun, counter: Counter, halt: StopConditions, *, in_process: bool) -> None:
    """Have the pool of a run trained in a process of its own, unless it is settled.

    Whatever happens to that process costs the run its pool, and nothing else. Where the run is to stop, nothing is
    settled, and a resume begins anew.

    in_process: train it in this process, for a debugger.
    """
    definition, directory = owned.plan.spec.definition, owned.directory
    if definition.pool == OFF or pool_settled(directory):
        return
    if why := why_no_pool(definition, owned.plan.studies):
        write_pool(directory, RunPool(why))
        return
    counter.doing = "training the pool"
    run = WorkerRun.of(owned)
    if in_process:
        try:
            with exits_raised():
                train_pool(run)
        except TuningError:
            raise
        except (Exception, SystemExit) as error:  # of the user's own code
            _settle_none(directory, raised(error))
        return
    with PoolProcess(halt) as process:
        halt.signals.order = process.leave
        try:
            process.call("training it", POOL_SECONDS, train_pool, run)
        except HostStoppedError:
            return
        except NotLookedAtError as error:
            _settle_none(directory, str(error))
        finally:
            halt.signals.order = None


def _settle_none(directory: RunDirectory, why: str) -> None:
    logger.warning("there is no pool, so each customer's model is of its own rows alone: %s", why)
    write_pool(directory, RunPool(why))


class PoolProcess(ChildProcess):
    """A child process that is left when the run is to stop; `HostStoppedError` says so."""

    def __init__(self, halt: StopConditions) -> None:
        super().__init__()
        self._halt = halt

    def leave(self) -> None:
        """End it at once."""
        self.end()

    def glance(self) -> None:
        if self._halt.wanted:
            raise HostStoppedError
