"""What models and objectives are given to start a worker group with, whichever kind it is."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from tuning.models.families import xgboost_ray
from tuning.models.group_training import GroupTraining, TrainingJob
from tuning.models.worker_group import ActorGroup
from tuning.worker_groups.process_group import RayPlace

if TYPE_CHECKING:
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    from tuning.models.trainers.training import Report


class TrialPlace(RayPlace):
    """The place of a trial's worker group; see `tuning.models.shards.GroupPlace`."""

    def train(self, works: Sequence[TrainingJob], worker_group: ActorGroup, family: str) -> GroupTraining:
        """Start a worker group that trains the models of a trial."""
        if family == xgboost_ray.FAMILY.name:
            from tuning.worker_groups.xgboost_ray import Folds

            return Folds(works, worker_group, self)
        from tuning.worker_groups.xgboost_actors import Actors

        return Actors(works, worker_group, self)


def train_with_ray(trainer: DataParallelTrainer, folder: str, name: str) -> Generator[Report, None, None]:
    """Return the reports of a trainer's workers, see `tuning.models.trainers.training.Home`."""
    from tuning.worker_groups.ray_train import trained

    yield from trained(trainer, folder, name)
