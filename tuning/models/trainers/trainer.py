"""Which objective makes trainers of Ray Train, what their workers take of a cluster, and what a trial does with one.

A function says it by the default of its parameter `scaling_config`, which a plan can read without calling it. A trainer
itself stands for a function that makes one like it. Ray is not imported here: nothing is a trainer before somebody has.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar, TypeGuard

from tuning.basics.wording import amount
from tuning.errors import DefinitionError
from tuning.models.worker_group import PACK, WorkerGroup
from tuning.user_code import signature_of

if TYPE_CHECKING:
    from ray.train import ScalingConfig
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

SCALING = "scaling_config"
TRAINERS, CONFIGS = "ray.train.v2.api.data_parallel_trainer", "ray.train.v2.api.config"


@dataclass(frozen=True)
class TrainWorkers(WorkerGroup):
    """The workers that train one trial together.

    Attributes:
        count: how many.
        each: what one takes, as a bundle of a placement group, such as `{"CPU": 2.0, "GPU": 1.0}`.
        strategy: how Ray is to place them, such as "PACK".
    """

    noun: ClassVar[str] = "workers"
    idle_driver: ClassVar[bool] = True
    count: int
    each: Mapping[str, float]
    strategy: str = PACK

    @property
    def bundles(self) -> list[dict[str, float]]:
        return [dict(self.each) for _ in range(self.count)]

    def __str__(self) -> str:
        each = ", ".join(f"{count:g} {name}" for name, count in self.each.items())
        return f"{amount(self.count, 'worker')} of {each}"


def is_trainer(value: object) -> TypeGuard[DataParallelTrainer]:
    """Return whether it is one of Ray Train's trainers, such as `XGBoostTrainer`."""
    known = sys.modules.get(TRAINERS)
    return known is not None and isinstance(value, known.DataParallelTrainer)


def maker_of(trainer: DataParallelTrainer) -> Callable[..., DataParallelTrainer]:
    """Return a function that makes trainers like this one; a configuration is added to its `train_loop_config`."""

    def make(
        config: Mapping[str, object], scaling_config: ScalingConfig = trainer.scaling_config
    ) -> DataParallelTrainer:
        found = copy.copy(trainer)
        found.train_loop_config = {**(trainer.train_loop_config or {}), **config}
        found.scaling_config = scaling_config
        return found

    return make


def workers_of(objective: Callable[..., object] | None) -> TrainWorkers | None:
    """Return the workers of the trainers that an objective makes; None for one that makes none, as far as it says.

    Raises:
        DefinitionError: they cannot stand in a trial's own placement group, or Ray Train is of an unknown version.
    """
    known = sys.modules.get(CONFIGS)
    if objective is None or known is None:
        return None
    parameter = (signature_of(objective) or {}).get(SCALING)
    if parameter is None or not isinstance(parameter.default, known.ScalingConfig):
        return None
    found = asked_by(parameter.default)
    if why := _unsuitable():
        raise DefinitionError(f"objective: {why}")
    return found


def _unsuitable() -> str:
    """Return why Ray Train cannot work here, as a sentence: it lacks what a trial's controller extends; else empty."""
    here = f"trainers of Ray Train work with Ray 2.60, and {version('ray')} is installed"
    way_out = "pip install 'ray[train]==2.60.*'."
    try:
        from ray.train.v2._internal.execution.controller import TrainController
        from ray.train.v2._internal.execution.worker_group import WorkerGroup
    except ImportError as error:
        return f"{here} ({error}): {way_out}"
    needed = {
        TrainController: ("_poll_workers", "worker_group_cls"),
        WorkerGroup: ("_create_placement_group", "_create_workers"),
    }
    missing = [name for kind, names in needed.items() for name in names if not hasattr(kind, name)]
    return f"{here}, which has no {missing[0]}: {way_out}" if missing else ""


def asked_by(scaling: ScalingConfig) -> TrainWorkers:
    """Return the workers of a trainer; `DefinitionError` where they cannot stand in a trial's own placement group."""
    count = scaling.num_workers
    if not isinstance(count, int) or count < 1:
        raise DefinitionError(
            f"objective: ScalingConfig(num_workers={count!r}): a trial has a placement group for as many workers as it "
            "has from its beginning to its end. Give one number of 1 or more."
        )
    for name in ("label_selector", "topology"):
        if getattr(scaling, name, None):
            raise DefinitionError(
                f"objective: ScalingConfig({name}=…): a trial's placement group takes no such wish; leave it out, or "
                "name a custom resource in resources_per_worker."
            )
    each = {name: float(amount) / count for name, amount in scaling.total_resources.items() if amount}
    return TrainWorkers(count, each, str(scaling.placement_strategy))
