"""One method against another: the test, the size of the difference, what it costs, and what may be said."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property

import numpy as np

from tuning.compare.analysis.blocks import Blocks
from tuning.compare.analysis.power import Power, power
from tuning.compare.analysis.statistics import (
    TIE_DECIMALS,
    Counts,
    Friedman,
    Interval,
    SignedRank,
    bootstrap,
    counts,
    holm,
    pairwise,
)

BETTER, WORSE, SAME, UNCLEAR = "better", "worse", "same", "unclear"
# The bootstrap cannot know of what it has not seen: a loss that strikes one task in five is absent from 5 tasks in a
# third of all samples, from 8 in a sixth.
FEWEST_FOR_SAME = 8


@dataclass(frozen=True, eq=False)
class Pair:
    """A method against a reference, at the end of the budget.

    Attributes:
        method, reference: the two.
        difference: mean normalised regret of the method minus the reference's, with its interval; negative is better.
        median: of the same differences.
        counts: on how many blocks the method is better, equal, worse.
        test, p: the signed-rank test and its Holm-adjusted p.
        cost: geometric mean of the method's cost over the reference's.
        verdict: better or worse (significant, and Friedman's test too), same (the interval lies within the margin, of
            `FEWEST_FOR_SAME` blocks or more), or unclear.
        values: the differences that were tested.
        level: of the test, for the power.
    """

    method: str
    reference: str
    difference: Interval
    median: float
    counts: Counts
    test: SignedRank
    p: float
    cost: Interval | None
    verdict: str
    values: np.ndarray = field(repr=False)
    level: float = field(repr=False)

    @cached_property
    def power(self) -> Power:
        """Of the signed-rank test for a difference like this, at the level that Holm's correction leaves it."""
        return power(self.values, self.level)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, the power included."""
        figures = {name: value for name, value in asdict(self).items() if name not in ("values", "level")}
        return {**figures, "significant": self.significant, "power": asdict(self.power)}

    @property
    def significant(self) -> bool:
        return self.verdict in (BETTER, WORSE)


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of methods on the same blocks.

    Without a baseline the best method is chosen by the data, so Holm's correction is over all pairs; with one it
    is over the pairs with the baseline, and other pairs keep the correction over all.
    """

    methods: tuple[str, ...]
    blocks: Blocks
    baseline: str | None
    friedman: Friedman | None
    alpha: float
    margin: float
    tests: dict[tuple[int, int], SignedRank]
    adjusted: np.ndarray
    _made: dict[tuple[str, str], Pair] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        methods: tuple[str, ...],
        blocks: Blocks,
        baseline: str | None,
        friedman: Friedman | None,
        alpha: float,
        margin: float,
    ) -> Pairs:
        tests = pairwise(blocks.values.T)
        adjusted = np.ones((len(methods), len(methods)))
        everything = list(tests)
        families = [everything]
        if baseline is not None:
            families.append([pair for pair in everything if methods.index(baseline) in pair])
        for family in families:
            for (a, b), p in zip(family, holm([tests[pair].p for pair in family]), strict=True):
                adjusted[a, b] = adjusted[b, a] = p
        return cls(methods, blocks, baseline, friedman, alpha, margin, tests, adjusted)

    @property
    def family(self) -> int:
        """How many comparisons Holm's correction is over, as far as the reader is concerned."""
        count = len(self.methods)
        return count * (count - 1) // 2 if self.baseline is None else count - 1

    @property
    def different(self) -> np.ndarray:
        """Square: True where a pair differs significantly."""
        return np.asarray((self.adjusted <= self.alpha) & self._differ_at_all)

    def pair(self, method: str, reference: str) -> Pair:
        """Return the comparison of two methods, from the first one's side."""
        if (method, reference) not in self._made:
            self._made[(method, reference)] = self._pair(method, reference)
        return self._made[(method, reference)]

    def _pair(self, method: str, reference: str) -> Pair:
        a, b = self.methods.index(method), self.methods.index(reference)
        values = np.round(self.blocks.values[a] - self.blocks.values[b], TIE_DECIMALS)
        clipped = self.blocks.clipped[a] - self.blocks.clipped[b]
        test = self.tests[(a, b)] if a < b else _turned(self.tests[(b, a)])
        difference = bootstrap(clipped)
        return Pair(
            method,
            reference,
            difference,
            float(np.median(clipped)),
            counts(values),
            test,
            float(self.adjusted[a, b]),
            self._cost(a, b),
            self._verdict(test, difference, bool(self.different[a, b])),
            values,
            self._level(a, b),
        )

    @property
    def _differ_at_all(self) -> bool:
        return self.friedman is None or self.friedman.p <= self.alpha

    def _verdict(self, test: SignedRank, difference: Interval, different: bool) -> str:
        if different:
            return WORSE if test.plus > test.minus else BETTER
        enough = self.blocks.count >= FEWEST_FOR_SAME
        within = -self.margin <= difference.low and difference.high <= self.margin
        return SAME if enough and within else UNCLEAR

    def _level(self, a: int, b: int) -> float:
        """Return the level that Holm's correction leaves to this pair at worst: alpha over the size of its family."""
        with_baseline = self.baseline is not None and self.methods.index(self.baseline) in (a, b)
        count = len(self.methods)
        return self.alpha / (count - 1 if with_baseline else count * (count - 1) // 2)

    def _cost(self, a: int, b: int) -> Interval | None:
        if self.blocks.cost is None:
            return None
        own, other = self.blocks.cost[a], self.blocks.cost[b]
        known = (own > 0) & (other > 0)
        if not known.any():
            return None
        logs = bootstrap(np.log(own[known] / other[known]))
        return Interval(*(float(np.exp(value)) for value in (logs.value, logs.low, logs.high)))


def _turned(test: SignedRank) -> SignedRank:
    return SignedRank(test.minus, test.plus, test.p)
