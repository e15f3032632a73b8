"""What a scheduler that changes hyperparameters during training may change, and how: never outside its range.

Ray's perturbation ignores the bounds of a parameter (0.95 of [0, 1] becomes 1.14), cannot move a small whole
number (round(1 * 0.8) is always 1) and multiplies categories.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from schedulers.errors import SchedulerError
from schedulers.protocols import TrialConfig

ATTEMPTS = 20


class Mutation(Protocol):
    """One hyperparameter that may change.

    Attributes:
        path: keys that lead to it through a nested configuration.
        when: it exists only where the parameters of these names have one of these values.
    """

    @property
    def path(self) -> tuple[str, ...]: ...

    @property
    def when(self) -> Mapping[str, Sequence[object]]: ...

    def sample(self, rng: random.Random) -> Any:
        """A fresh value."""

    def perturb(self, value: Any, factor: float, rng: random.Random) -> Any:
        """A neighbour of `value`; `factor` is above 1 to go up and below 1 to go down."""


@dataclass(frozen=True)
class Range:
    """A number from `low` to `high`, both included.

    Attributes:
        path, when: as in `Mutation`.
        log: sampled evenly in the logarithm.
        step: only low, low + step, ….
        whole: whole numbers only.
    """

    path: tuple[str, ...]
    low: float
    high: float
    log: bool = False
    step: float | None = None
    whole: bool = False
    when: Mapping[str, Sequence[object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise SchedulerError(f"range of {'.'.join(self.path)}: low {self.low!r} is above high {self.high!r}")
        if self.log and self.low <= 0:
            raise SchedulerError(f"range of {'.'.join(self.path)}: log needs low > 0, not {self.low!r}")

    def sample(self, rng: random.Random) -> float | int:
        if self.log:
            return self.nearest(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))
        return self.nearest(rng.uniform(self.low, self.high))

    def perturb(self, value: float, factor: float, rng: random.Random) -> float | int:
        """`value * factor`; where a range reaches below 0, `value` plus that share of half its width."""
        if self.low > 0 or (self.low == 0 and value > 0):
            moved = value * factor
        else:
            moved = value + (factor - 1.0) * (self.high - self.low) / 2
        found = self.nearest(moved)
        stride = self.step or (1 if self.whole else None)
        if found == value and stride is not None:
            found = self.nearest(value + math.copysign(stride, factor - 1.0))
        return found

    def nearest(self, value: float) -> float | int:
        """The value of the range nearest to a number."""
        value = min(max(value, self.low), self.high)
        stride = self.step or (1 if self.whole else None)
        if stride is not None:
            last = math.floor((self.high - self.low) / stride + 1e-9)  # high itself, within rounding
            value = min(self.low + min(round((value - self.low) / stride), last) * stride, self.high)
        return int(value) if self.whole else float(value)


@dataclass(frozen=True)
class Choices:
    """One of several values: numbers move to their neighbour, anything else only changes when resampled."""

    path: tuple[str, ...]
    values: tuple[object, ...]
    when: Mapping[str, Sequence[object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.values:
            raise SchedulerError(f"choices of {'.'.join(self.path)}: give at least one value")

    def sample(self, rng: random.Random) -> Any:
        return rng.choice(self.values)

    def perturb(self, value: Any, factor: float, rng: random.Random) -> Any:
        if any(isinstance(each, bool) or not isinstance(each, int | float) for each in self.values):
            return value
        ordered: list[Any] = sorted(self.values)
        if value not in ordered:
            return rng.choice(self.values)
        position = ordered.index(value) + (1 if factor > 1 else -1)
        return ordered[min(max(position, 0), len(ordered) - 1)]


@dataclass(frozen=True)
class Mutations:
    """All that may change during training, and what every changed configuration must satisfy.

    Attributes:
        parameters: in any order; one that a configuration does not have, or whose condition does not hold in it,
            is left alone.
        allows: a search space's constraints; None for no constraint.
    """

    parameters: tuple[Mutation, ...] = ()
    allows: Callable[[TrialConfig], bool] | None = None

    def vary(
        self,
        config: TrialConfig,
        resample_probability: float,
        factors: Sequence[float],
        rng: random.Random,
    ) -> TrialConfig:
        """A new configuration: each parameter drawn anew with that probability, else perturbed by a factor.

        Where the constraints refuse `ATTEMPTS` in a row it is a copy of the old one.
        """
        for _ in range(ATTEMPTS):
            varied = copy.deepcopy(config)
            for parameter in self.parameters:
                place = parameter_place(varied, parameter)
                if place is None:
                    continue
                name = parameter.path[-1]
                if rng.random() < resample_probability:
                    place[name] = parameter.sample(rng)
                else:
                    place[name] = parameter.perturb(place[name], rng.choice(factors), rng)
            if self.allows is None or self.allows(varied):
                return varied
        return copy.deepcopy(config)


NO_MUTATIONS = Mutations()


def parameter_place(config: TrialConfig, parameter: Mutation) -> TrialConfig | None:
    """The (nested) mapping that holds the parameter's value; None if it does not exist in this configuration."""
    if any(config.get(name) not in allowed for name, allowed in parameter.when.items()):
        return None
    place: object = config
    for key in parameter.path[:-1]:
        place = place.get(key) if isinstance(place, dict) else None
    return place if isinstance(place, dict) and parameter.path[-1] in place else None
