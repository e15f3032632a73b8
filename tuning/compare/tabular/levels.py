"""A grid as a search space: numbers become positions of their levels, so that every suggestion is on the grid.

A searcher then sees an ordered parameter with evenly spaced levels, as a grid in a parameter's own scale has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from search_spaces import Choice, Constant, Float, Int, SearchSpace, SpaceError
from search_spaces.parameters import Parameter, same
from search_spaces.values import Configuration, PlainValue, Point
from tuning.basics.wording import amount


@dataclass(frozen=True)
class Levels:
    """A grid, in values and in positions of levels.

    Attributes:
        space: the space that the grid was made from.
        grid: the same over positions.
        values: per label the levels of a number.
    """

    space: SearchSpace
    grid: SearchSpace
    values: Mapping[str, tuple[float, ...]]

    @classmethod
    def of(cls, space: SearchSpace, configs: Sequence[Point]) -> Levels:
        """Return the levels in configurations of a space (the grid itself keeps its constraints).

        Raises:
            SpaceError: a parameter never occurs, or the grid is not complete.
        """
        values: dict[str, set[float]] = {
            label: set() for label, p in space.labelled.items() if isinstance(p, Float | Int)
        }
        for config in configs:
            for label, parameter in space.existing(config).items():
                if label in values:
                    values[label].add(config[parameter.name])
        ordered = {label: tuple(sorted(found)) for label, found in values.items()}
        for label, found in ordered.items():
            if not found:
                raise SpaceError("no configuration of the table has it", path=label)
        levels = cls(space, SearchSpace([_positioned(space, label, ordered) for label in space.labelled]), ordered)
        complete = levels.grid.grid(max(map(len, ordered.values()), default=1)).size
        if complete == len(configs):
            return levels
        if not space.constraints:
            raise SpaceError(
                f"the table has {amount(len(configs), 'configuration')}, a complete grid of its levels has {complete}"
            )
        known = {_key(levels.positions(config)) for config in configs}
        allowed = SearchSpace(levels.grid.parameters, [lambda config: _key(config) in known])
        return replace(levels, grid=allowed)

    def positions(self, config: Point) -> Configuration:
        """Return a configuration with numbers replaced by positions of their levels."""
        found: Configuration = {}
        existing = self.space.existing(config)
        for label, parameter in existing.items():
            value = config[parameter.name]
            found[parameter.name] = self.values[label].index(value) if label in self.values else value
        strangers = set(config) - {parameter.name for parameter in existing.values()}
        if strangers:
            raise SpaceError("does not exist in this configuration of the table", path=min(strangers))
        return found


def _key(config: Point) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, repr(value)) for name, value in config.items()))


def _positioned(space: SearchSpace, label: str, values: Mapping[str, tuple[float, ...]]) -> Parameter:
    """Return a parameter over positions; conditions on numbers are translated too."""
    parameter = space.labelled[label]
    when = {parent: _translated(space, parent, allowed, values) for parent, allowed in parameter.when.items()}
    if isinstance(parameter, Choice):
        return Choice(parameter.name, parameter.values, default=parameter.default, when=when)
    if isinstance(parameter, Constant):
        return Constant(parameter.name, parameter.value, when=when)
    found = values[label]
    scale = np.log if parameter.log else np.asarray
    nearest = int(np.argmin(np.abs(scale(np.array(found, float)) - scale(float(parameter.default)))))
    return Int(parameter.name, 0, len(found) - 1, default=nearest, when=when)


def _translated(
    space: SearchSpace, parent: str, allowed: Sequence[object], values: Mapping[str, tuple[float, ...]]
) -> Sequence[object]:
    numbers = [values[label] for label, p in space.labelled.items() if p.name == parent and label in values]
    if not numbers:
        return list(allowed)
    found = [levels.index(value) for levels in numbers for value in allowed if value in levels]
    if not found:
        raise SpaceError(f"no configuration of the table has {parent} at {list(allowed)}", path=parent)
    return found


def inferred_space(configs: Sequence[Point]) -> SearchSpace:
    """Return the space of a complete grid without conditions: numbers by their range, all else as choices."""
    names = list(configs[0])
    for config in configs:
        if set(config) != set(names):
            odd = sorted(set(config) ^ set(names))
            raise SpaceError(
                "exists in some configurations only; store the search space with the table, its conditions say when",
                path=odd[0],
            )
    return SearchSpace([_inferred(name, [config[name] for config in configs]) for name in names])


def _inferred(name: str, values: list[PlainValue]) -> Parameter:
    distinct: list[PlainValue] = []
    seen: set[str] = set()
    for value in values:
        if (text := repr(value)) not in seen:
            seen.add(text)
            distinct.append(value)
    numbers = [float(value) for value in distinct if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(distinct) or any(same(a, b) for i, a in enumerate(distinct) for b in distinct[:i]):
        return Choice(name, distinct)
    ordered = sorted(numbers)
    middle = ordered[len(ordered) // 2]
    return Float(name, ordered[0], ordered[-1], default=middle)
