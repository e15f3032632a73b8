"""Sobol sequences: random search whose points avoid each other (Owen 1998; Joe & Kuo 2008's directions, SciPy's)."""

from __future__ import annotations

from typing import ClassVar, Literal

from search_spaces.algorithms.base import Algorithm
from search_spaces.direction import Mode
from search_spaces.errors import SpaceError
from search_spaces.proposer import Outcome, Proposer
from search_spaces.space import ATTEMPTS, SearchSpace
from search_spaces.values import Configuration, Point


class Sobol(Algorithm):
    """A scrambled Sobol sequence over the unit cube of all parameters.

    Covers few dimensions more evenly than chance; a number of trials that is a power of two covers best. The
    coordinates of parameters that do not exist in a trial are spent unused.
    """

    name: Literal["sobol"] = "sobol"

    title: ClassVar[str] = "scrambled low-discrepancy sequence"
    paper: ClassVar[str] = "Sobol' 1967; Owen 1998, J. Complexity 14:466; Joe & Kuo 2008"
    requires: ClassVar[dict[str, str]] = {"scipy": "scipy"}
    learns: ClassVar[str] = "nothing"

    def _proposer(self, space: SearchSpace, mode: Mode, seed: int, n_trials: int | None) -> Proposer:
        return _SobolPoints(space, seed)


class _SobolPoints:
    def __init__(self, space: SearchSpace, seed: int) -> None:
        import numpy as np
        from scipy.stats.qmc import Sobol as Sequence

        self._space = space
        self._varies = [not parameter.single for parameter in space.labelled.values()]
        self._sequence = Sequence(max(sum(self._varies), 1), scramble=True, rng=np.random.default_rng(seed))
        self._block: list[list[float]] = []

    def propose(self, number: int) -> Configuration:
        for _ in range(ATTEMPTS):
            config = self._space.at(self._next())
            if self._space.allows(config):
                return config
        raise SpaceError(
            f"the constraints refused {ATTEMPTS} points of the sequence in a row; loosen them or narrow the ranges",
            path="constraints",
        )

    def _next(self) -> list[float]:
        if not self._block:
            # Whole powers of two, as the sequence wants: 32 points, then as many as there were so far.
            count = self._sequence.num_generated or 32
            self._block = self._sequence.random(count).tolist()[::-1]
        coordinates = iter(self._block.pop())
        return [next(coordinates) if varies else 0.0 for varies in self._varies]

    def adopt(self, number: int, config: Point) -> None:
        """Nothing to do: the sequence goes its way."""

    def learn(self, number: int, outcome: Outcome) -> None:
        """Nothing to learn."""

    def remember(self, config: Point, value: float) -> None:
        """Nothing to learn."""
