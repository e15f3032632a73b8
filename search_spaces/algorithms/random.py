"""Random search (Bergstra & Bengio 2012): every trial independent, each parameter uniform in its scale."""

from __future__ import annotations

from typing import ClassVar, Literal

from search_spaces.algorithms.base import Algorithm
from search_spaces.direction import Mode
from search_spaces.proposer import Outcome, Proposer
from search_spaces.space import SearchSpace
from search_spaces.values import Configuration, Point


class Random(Algorithm):
    """Random search; hard to beat in a few dimensions and the yardstick for every other algorithm."""

    name: Literal["random"] = "random"

    title: ClassVar[str] = "independent uniform draws"
    paper: ClassVar[str] = "Bergstra & Bengio 2012, JMLR 13:281"
    learns: ClassVar[str] = "nothing"

    def _proposer(self, space: SearchSpace, mode: Mode, seed: int, n_trials: int | None) -> Proposer:
        return RandomDraws(space, seed)


class RandomDraws:
    """Independent draws from the space."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        import numpy as np

        self._space = space
        self._rng = np.random.default_rng(seed)

    def propose(self, number: int) -> Configuration:
        return self._space.sample(self._rng)

    def adopt(self, number: int, config: Point) -> None:
        """Nothing to do: draws do not depend on each other."""

    def learn(self, number: int, outcome: Outcome) -> None:
        """Nothing to learn."""

    def remember(self, config: Point, value: float) -> None:
        """Nothing to learn."""
