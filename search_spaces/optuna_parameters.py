"""Optuna's distributions as our parameters, so that a space may be a dict of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from search_spaces.errors import SpaceError
from search_spaces.parameters import Choice, Float, Int, Parameter
from search_spaces.values import When

if TYPE_CHECKING:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    Distribution: TypeAlias = CategoricalDistribution | FloatDistribution | IntDistribution


def is_distribution(entry: object) -> bool:
    """Return whether something is a `FloatDistribution` or the like; by name, so that Optuna is not imported for it."""
    return any(
        kind.__name__ == "BaseDistribution" and kind.__module__ == "optuna.distributions"
        for kind in type(entry).__mro__
    )


def parameter_of(name: str, distribution: Distribution, when: When, nested: tuple[str, ...]) -> Parameter:
    """Return the parameter of that name; `SpaceError` for a distribution that Optuna itself has given up."""
    kind = type(distribution).__name__
    if kind == "CategoricalDistribution":
        return Choice(name, list(distribution.choices), when=when, nested=nested)
    if kind not in ("FloatDistribution", "IntDistribution"):
        raise SpaceError(f"{kind} is deprecated in Optuna; write FloatDistribution or IntDistribution", path=name)
    low, high, log, step = distribution.low, distribution.high, distribution.log, distribution.step
    if kind == "FloatDistribution":
        return Float(name, low, high, log=log, step=step, when=when, nested=nested)
    return Int(name, low, high, log=log, step=None if step == 1 else step, when=when, nested=nested)
