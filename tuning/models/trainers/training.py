"""What a trial does with a trainer of Ray Train: it begins, reports, and ends with all that it has started."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tuning.errors import StudyError
from tuning.models.trainers.trainer import SCALING, TrainWorkers, asked_by
from tuning.notes import EndCode

if TYPE_CHECKING:
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

EXAMPLE = "def trainer(config, scaling_config=ScalingConfig(num_workers=2))"

Report: TypeAlias = tuple[int, Mapping[str, object]]  # a step's number, from 1, and what the first worker reported


@dataclass(frozen=True)
class Home:
    """Where a trial's training keeps its checkpoints: a path or URI of a folder, and the name of one inside it.

    A training that finds checkpoints there goes on from the last one. workers: what it has room for. train: gives the
    reports of a trainer's workers, which have their checkpoints in a folder under a name.
    """

    folder: str
    name: str
    workers: TrainWorkers
    train: Callable[[DataParallelTrainer, str, str], Generator[Report, None, None]]


def keep_ray_data_here() -> None:
    """Let Ray Data work in the bundle of the trial itself: all CPUs outside may belong to other trials."""
    from ray.data import DataContext
    from ray.util.placement_group import get_current_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    if (group := get_current_placement_group()) is None:
        return
    here = PlacementGroupSchedulingStrategy(group, 0, placement_group_capture_child_tasks=True)
    context = DataContext.get_current()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Ray 2.60 knows no other way
        context.scheduling_strategy = context.scheduling_strategy_large_args = here


def reports(trainer: DataParallelTrainer, home: Home | None) -> Generator[Report, None, None]:
    """Train, and give each report of the workers; closing it ends all that was started.

    After a lost worker, reports since the last checkpoint come again, under the same numbers.

    Raises:
        StudyError: nobody has said before what its workers take, or its workers take more than was said.
    """
    if home is None:
        raise StudyError(EndCode.TRAINER_NOT_ANNOUNCED(type(trainer).__name__, example=EXAMPLE))
    asked = asked_by(trainer.scaling_config)
    if asked.count > home.workers.count or any(
        amount > home.workers.each.get(name, 0.0) for name, amount in asked.each.items()
    ):
        raise StudyError(
            EndCode.TRAINER_TOO_LARGE(
                type(trainer).__name__, asked=str(asked), room=str(home.workers), parameter=SCALING
            )
        )
    yield from home.train(trainer, home.folder, home.name)
