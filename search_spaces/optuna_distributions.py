"""A search space's parameters as Optuna's distributions, and values there and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from search_spaces.parameters import Choice, Constant, Float, Int, Parameter
from search_spaces.space import SearchSpace
from search_spaces.values import PlainValue

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


def has_log_step(parameter: Float | Int) -> bool:
    """Return whether it has a step on a log scale, which Optuna does not know."""
    return parameter.log and parameter.step is not None and (parameter.kind == "float" or parameter.step > 1)


def _by_index(parameter: Parameter) -> bool:
    """Whether Optuna is told the places of values: of steps, too, as it lowers a `high` that they miss by rounding."""
    stepped = isinstance(parameter, Float) and parameter.step is not None and not parameter.log
    return isinstance(parameter, Choice) or stepped


def distributions(space: SearchSpace) -> dict[str, BaseDistribution]:
    """Return label -> Optuna distribution for every parameter that varies.

    Choices are given by index unless all values are text, because Optuna mixes up 1, 1.0 and true and has
    no lists.
    """
    return {label: _distribution(p) for label, p in space.labelled.items() if not p.single}


def _distribution(parameter: Parameter) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(parameter, Choice):
        values = parameter.values
        texts = all(isinstance(value, str) for value in values)
        return CategoricalDistribution(values if texts else range(len(values)))
    assert not isinstance(parameter, Constant)
    if _by_index(parameter):
        return IntDistribution(0, (parameter.size or 1) - 1)
    if parameter.kind == "float":
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
    step = 1 if has_log_step(parameter) else int(parameter.step or 1)
    return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=step)


def to_optuna(parameter: Parameter, value: Any) -> float:
    """Return the value in Optuna's internal form: a choice's index, or the number."""
    return float(parameter.index(value) if _by_index(parameter) else value)  # type: ignore[union-attr]  # it has one


def from_optuna(parameter: Parameter, distribution: BaseDistribution, value: Any) -> PlainValue:
    """Return a value that Optuna has drawn, as the parameter has it."""
    if isinstance(parameter, Choice):
        return parameter.value(int(distribution.to_internal_repr(value)))
    assert not isinstance(parameter, Constant)
    if _by_index(parameter):
        return parameter.value(int(value))
    if parameter.kind == "int" or parameter.step is not None:
        return parameter.nearest(value)
    return min(max(float(value), parameter.low), parameter.high)
