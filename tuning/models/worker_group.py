"""The processes that train one trial together: as many Ray actors as a model asks for, or the workers of Ray Train.

A configuration holds them as constants, so each trial's record says what it was trained on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Literal, TypeVar, get_args

T = TypeVar("T")
Recovery = Literal["warm", "cold", "elastic"]
SMALLEST_SHARE = 0.01  # of a CPU
RESTARTS = 3  # after lost actors in one training; then the trial has failed
RECOVERIES: tuple[str, ...] = get_args(Recovery)


PACK = "PACK"  # Ray's own choice of where bundles are to be: on few machines


class WorkerGroup(ABC):
    """The processes that train one trial together, without the trial's own process.

    Attributes:
        noun: what they are called.
        idle_driver: whether the trial's own process only waits for them.
        strategy: how Ray is to place them.
    """

    noun: ClassVar[str]
    idle_driver: ClassVar[bool] = False
    strategy: str = PACK

    @property
    @abstractmethod
    def bundles(self) -> list[dict[str, float]]:
        """What they take of a cluster, one bundle each."""

    @property
    def cpus(self) -> float:
        """Of all of them."""
        return sum(bundle.get("CPU", 0.0) for bundle in self.bundles)


@dataclass(frozen=True)
class ActorGroup(WorkerGroup):
    """What the actors of one trial are.

    Attributes:
        actors: how many.
        cpus_per_actor: CPUs of each; whole ones are also its threads.
        gpus_per_actor: GPUs of each, 0 to 1.
        recovery: what follows when an actor is lost. "warm": it is started again. "cold": all are. "elastic": the
            others go on without it, and take it back when it is there again. In each case training goes on from the
            last step, or a few rounds before.
    """

    noun: ClassVar[str] = "actors"
    actors: int = 2
    cpus_per_actor: float = 1.0
    gpus_per_actor: float = 0.0
    recovery: Recovery = "warm"

    def __post_init__(self) -> None:
        if not isinstance(self.actors, int) or isinstance(self.actors, bool) or self.actors < 1:
            raise ValueError(f"actors: {self.actors!r} is not a whole number of 1 or more.")
        if not _number(self.cpus_per_actor) or self.cpus_per_actor < SMALLEST_SHARE:
            raise ValueError(f"cpus_per_actor: {self.cpus_per_actor!r} is not a number of {SMALLEST_SHARE} or more.")
        if not _number(self.gpus_per_actor) or not 0 <= self.gpus_per_actor <= 1:
            raise ValueError(
                f"gpus_per_actor: {self.gpus_per_actor!r} is not between 0 and 1: a GPU, or a share of one."
            )
        if self.recovery not in RECOVERIES:
            raise ValueError(f"recovery: {self.recovery!r} is not one of {', '.join(RECOVERIES)}.")

    @classmethod
    def of(cls, values: Mapping[str, object]) -> ActorGroup:
        """Return the worker group that a configuration holds; `ValueError` says what is wrong with a value."""
        return cls(**{name: values[name] for name in GROUP_FIELDS if name in values})  # type: ignore[arg-type]  # checked there

    @property
    def bundles(self) -> list[dict[str, float]]:
        gpus = {"GPU": float(self.gpus_per_actor)} if self.gpus_per_actor else {}
        return [{"CPU": float(self.cpus_per_actor), **gpus} for _ in range(self.actors)]

    @property
    def threads(self) -> int:
        """Of each actor."""
        return max(1, int(self.cpus_per_actor))


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


GROUP_FIELDS = tuple(field.name for field in fields(ActorGroup))


def without_group(config: Mapping[str, T]) -> dict[str, T]:
    """Return a configuration's parameters of the model itself."""
    return {name: value for name, value in config.items() if name not in GROUP_FIELDS}


def group_last(config: Mapping[str, T]) -> dict[str, T]:
    """Return a configuration with what the actors are at the end: tables show the beginning, and that does not vary."""
    return {**without_group(config), **{name: config[name] for name in GROUP_FIELDS if name in config}}
