"""Grid search: every combination of levels, in a fixed order, each once."""

from __future__ import annotations

import json
from itertools import islice
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from search_spaces.algorithms.base import Algorithm
from search_spaces.direction import Mode
from search_spaces.errors import SpaceError
from search_spaces.parameter_grid import MOST_LEVELS
from search_spaces.proposer import Outcome, Proposer
from search_spaces.space import SearchSpace
from search_spaces.values import Configuration, Point

MOST_COMBINATIONS = 1_000_000
LevelCount = Annotated[int, Field(ge=1, le=MOST_LEVELS)]


class Grid(Algorithm):
    """Every combination, the last parameter varying fastest; given points come first and are not repeated.

    Attributes:
        levels: values per float or int (choices have all of theirs), for all or by name; 5 for names
            left out.
        limit: refuse a grid of more combinations than this, naming its size, before anything starts.
    """

    name: Literal["grid"] = "grid"
    levels: LevelCount | dict[str, LevelCount] = 5
    limit: int = Field(default=10_000, ge=1, le=MOST_COMBINATIONS)

    title: ClassVar[str] = "every combination of levels, in order"
    paper: ClassVar[str] = "-"
    learns: ClassVar[str] = "nothing; leaves given and evaluated points out"

    def size(self, space: SearchSpace) -> int:
        """Return the number of combinations, those that constraints refuse not counted.

        Raises:
            SpaceError: more than `limit`, constraints not considered.
        """
        grid = space.grid(self.levels)
        if grid.size > self.limit:
            ways = [f"lower levels (now {self.levels})"] if space.grid(1).size <= self.limit else []
            ways += ["raise limit"] if grid.size <= MOST_COMBINATIONS else []
            raise SpaceError(
                f"the grid has {grid.size:,} combinations, more than the limit of {self.limit:,}; "
                f"{', '.join([*ways, ''])}{'or ' if ways else ''}use sobol or random",
                path="levels",
            )
        return sum(1 for _ in grid) if space.constraints else grid.size

    def check(self, space: SearchSpace, n_trials: int | None = None) -> None:
        super().check(space, n_trials)
        if self.size(space) == 0:
            raise SpaceError("the constraints refuse every combination of the grid", path="constraints")

    def count(self, space: SearchSpace) -> int:
        return self.size(space) + (space.default() not in space.grid(self.levels))

    def _check_constraints(self, space: SearchSpace) -> None:
        """The combinations are counted instead."""

    def _proposer(self, space: SearchSpace, mode: Mode, seed: int, n_trials: int | None) -> Proposer:
        return _Combinations(self, space)


class _Combinations:
    """A position in the grid; picklable, which an iterator is not."""

    def __init__(self, spec: Grid, space: SearchSpace) -> None:
        self._grid = space.grid(spec.levels)
        self._configs = iter(self._grid)
        self._taken = 0
        self._done: set[str] = set()

    def propose(self, number: int) -> Configuration | None:
        for config in self._configs:
            self._taken += 1
            if not self._done or _key(config) not in self._done:
                return config
        return None

    def adopt(self, number: int, config: Point) -> None:
        self._done.add(_key(config))

    def learn(self, number: int, outcome: Outcome) -> None:
        """Nothing to learn."""

    def remember(self, config: Point, value: float) -> None:
        self._done.add(_key(config))

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_configs"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._configs = islice(iter(self._grid), self._taken, None)


def _key(config: Point) -> str:
    return json.dumps(config, sort_keys=True)
