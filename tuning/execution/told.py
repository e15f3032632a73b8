"""What the worker of a Tune trial is told: which shard it works through, or which trial of a spread study it trains.

It is the configuration of the Tune trial. What the worker takes of the cluster is said there too, since a run's shards
and trials are Tune trials of one trainable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tuning.definition.options import Resources
from tuning.execution.room import Takes
from tuning.models.gang import Gang
from tuning.trainers.trainer import TrainWorkers

if TYPE_CHECKING:
    from ray.tune import PlacementGroupFactory

    from tuning.study.study import Study
    from tuning.study.trial import Trial

Told = dict[str, Any]
SHARD = "shard"
PACK = "PACK"  # Ray's own choice of where bundles are to be: on few machines


def shard_told(shard: int, needs: Resources, helpers: int = 0) -> Told:
    """What the worker of a shard is told. needs: what it takes. helpers: each takes the same, the first with it."""
    return {SHARD: shard, "bundles": [needs.to_bundle()] * max(1, helpers), "strategy": PACK}


def trial_told(
    study: Study, trial: Trial, checkpoint: str | None = None, gang: Gang | TrainWorkers | None = None
) -> Told:
    """What the worker of a spread study's trial is told.

    checkpoint: from which it goes on, a path in the run directory. gang: what trains it, where several processes do;
    for workers of a trainer the trial's own process only waits, so what it would take is for Ray Data.
    """
    own = [study.resources.to_bundle()]
    trainer = isinstance(gang, TrainWorkers)
    return {
        "study": study.id,
        "trial": trial.number,
        "config": dict(trial.config),
        "checkpoint": checkpoint,
        "bundles": [*([{}] if trainer else []), *own, *(gang.bundles if gang else [])],
        "strategy": gang.strategy if isinstance(gang, TrainWorkers) else PACK,
    }


def is_shard(told: Mapping[str, Any]) -> bool:
    """Whether that is what the worker of a shard is told."""
    return SHARD in told


def cpus(told: Told) -> float:
    """What a Tune trial takes, its actors included."""
    return sum(float(bundle.get("CPU", 0.0)) for bundle in told["bundles"])


def takes(told: Mapping[str, Any]) -> Takes:
    """The same as bundles of a placement group, and its strategy."""
    return told["bundles"], told["strategy"]


def placement_group(told: Told) -> PlacementGroupFactory:
    """What a Tune trial takes, as `tune.with_resources` wants it: a bundle for its own process, one for each actor."""
    from ray import tune

    return tune.PlacementGroupFactory(told["bundles"], strategy=told["strategy"])
