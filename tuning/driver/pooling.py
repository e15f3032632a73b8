"""Whether the pool of a run is still to be trained: its workers do that before all else."""

from __future__ import annotations

from tuning.models.pooled import RunPool
from tuning.planning.pool_notes import OFF, why_no_pool
from tuning.runs.begin import OwnedRun
from tuning.runs.plan_file import read_beside
from tuning.runs.pool_file import pool_settled, write_pool

POOLING = "training the pool"  # as of `Progress`


def pool_shard(owned: OwnedRun) -> int:
    """Under which number a run's pool is worked on: the one after its shards."""
    return len(owned.plan.shards)


def pool_is_due(owned: OwnedRun) -> bool:
    """Whether a run's pool is to be trained; where it is to have none, that is settled here."""
    definition, directory = owned.plan.spec.definition, owned.directory
    if definition.pool == OFF or pool_settled(directory):
        return False
    if why := why_no_pool(definition, owned.plan.studies, read_beside(directory, owned.plan.spec)):
        write_pool(directory, RunPool(why))
        return False
    return True
