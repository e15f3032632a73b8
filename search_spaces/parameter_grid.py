"""Every combination of a space's levels, in a fixed order, with its size known beforehand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from search_spaces.conditions import holds
from search_spaces.errors import SpaceError, did_you_mean
from search_spaces.parameters import Parameter
from search_spaces.proposer import FAILED, Outcome
from search_spaces.values import Configuration, PlainValue, Point, own_copy

# Values, as far as they decide what exists, of parameters that conditions name.
Assignment = tuple[tuple[str, PlainValue], ...]

MOST_LEVELS = 10_000  # per parameter
MOST_STATES = 200_000


class ParameterGrid:
    """The last parameter varies fastest, each from its first or lowest value to its last or highest.

    `size` counts the combinations before constraints and costs next to nothing; iterating makes one
    configuration at a time and leaves out what the constraints refuse. Conditional parameters multiply only
    where they exist.

    Args:
        parameters: a space's, in its order.
        allows: whether the space's constraints allow a configuration.
        levels: values per float or int, for all or by name (names left out get 5).

    Raises:
        SpaceError: levels below 1 or above 10,000, or for a parameter that does not exist.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        allows: Callable[[Configuration], bool],
        levels: int | Mapping[str, int] = 5,
    ) -> None:
        names = {parameter.name for parameter in parameters}
        by_name: Mapping[str, int] = levels if isinstance(levels, Mapping) else dict.fromkeys(names, levels)
        for name, count in by_name.items():
            if name not in names:
                raise SpaceError(f"there is no parameter {name!r}{did_you_mean(name, sorted(names))}", path="levels")
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise SpaceError(f"{count!r} must be a whole number of at least 1", path=f"levels.{name}")
            if count > MOST_LEVELS:
                raise SpaceError(f"{count!r} must be at most {MOST_LEVELS:,}", path=f"levels.{name}")
        self._allows = allows
        self._columns = [
            (parameter.name, parameter.levels(by_name.get(parameter.name, 5)), dict(parameter.when))
            for parameter in parameters
        ]
        self.size = self._count()

    def _count(self) -> int:
        # Only values that a later condition names can matter, so the states stay few however large the grid.
        asked = {name for _, _, when in self._columns for name in when}
        states: dict[Assignment, int] = {(): 1}
        for name, values, when in self._columns:
            following: dict[Assignment, int] = {}
            for state, count in states.items():
                if not holds(when, dict(state)):
                    following[state] = following.get(state, 0) + count
                elif name not in asked:
                    following[state] = following.get(state, 0) + count * len(values)
                else:
                    for value in values:
                        key = (*state, (name, value))
                        following[key] = following.get(key, 0) + count
            if len(following) > MOST_STATES:
                raise SpaceError(
                    f"the parameters that conditions name have more than {MOST_STATES:,} combinations; lower levels, "
                    "or use sobol or random",
                    path="levels",
                )
            states = following
        return sum(states.values())

    def __contains__(self, config: Point) -> bool:
        """Return whether a configuration of the space is one of the combinations, without going through them."""
        return all(not holds(when, config) or config[name] in values for name, values, when in self._columns)

    def __iter__(self) -> Iterator[Configuration]:
        """Configurations in order."""
        for config in self._walk(0, {}):
            if self._allows(config):
                yield config

    def _walk(self, index: int, config: Configuration) -> Iterator[Configuration]:
        while index < len(self._columns) and not holds(self._columns[index][2], config):
            index += 1
        if index == len(self._columns):
            yield own_copy(config)
            return
        name, values, _ = self._columns[index]
        for value in values:
            yield from self._walk(index + 1, {**config, name: value})

    def __len__(self) -> int:
        return self.size


class Untried:
    """The points of a grid that a study has not tried, and the outcomes of those that it has.

    seed: of the order in which `next` names them.
    """

    def __init__(self, grid: ParameterGrid, seed: int) -> None:
        self._grid, self._seed = grid, seed
        self._left: list[Configuration] | None = None
        self._outcomes: dict[str, Outcome] = {}

    def add(self, config: Point, outcome: Outcome = FAILED) -> None:
        """It is tried, or has ended with this outcome."""
        self._outcomes[_key(config)] = outcome

    def outcome(self, config: Point) -> Outcome | None:
        """Return how its trial ended, failed while the trial runs; None where there is none."""
        return self._outcomes.get(_key(config))

    def next(self) -> Configuration | None:
        """One of them; None when all have been tried."""
        if self._left is None:
            import numpy as np

            points = list(self._grid)
            self._left = [points[index] for index in np.random.default_rng(self._seed).permutation(len(points))]
        while self._left:
            config = self._left.pop()
            if self.outcome(config) is None:
                return config
        return None


def _key(config: Point) -> str:
    return json.dumps(config, sort_keys=True)
