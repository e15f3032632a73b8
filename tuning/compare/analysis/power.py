"""How often a comparison of this size finds a difference of this size, and how many tasks would find it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import stats

from tuning.compare.analysis.statistics import EXACT_TASKS, smallest_p

# Fewer observed tasks say next to nothing about how differences spread.
FEWEST_TASKS = 5
MOST_TASKS = 400


@dataclass(frozen=True)
class Power:
    """Power of Wilcoxon's test for a pair at level `alpha`.

    Attributes:
        tasks: how many there are.
        alpha: the level.
        found: share of simulated comparisons that find the difference; None with fewer than `FEWEST_TASKS` tasks.
        goal: the share to reach.
        needed: tasks for which `goal` of the comparisons find it; None if more than `MOST_TASKS` or unknown.
    """

    tasks: int
    alpha: float
    found: float | None
    goal: float
    needed: int | None

    def sentence(self, word: str = "tasks") -> str:
        """Return such as "with 8 customers a difference this size is found 1 time in 3; use 24 customers"."""
        if self.found is None:
            least = fewest_tasks(self.alpha)
            return (
                f"{self.tasks} {word} are too few to say how many would settle it; "
                f"below {least} no difference can be significant"
            )
        often = f"with {self.tasks} {word} a difference this size is found {frequency(self.found)}"
        if self.found >= self.goal:
            return often
        if self.needed:
            return f"{often}; use {self.needed} {word}"
        return f"{often}, and even {MOST_TASKS} would not settle it"


def power(differences: np.ndarray, alpha: float = 0.05, goal: float = 0.8, simulations: int = 1000) -> Power:
    """Simulate power: comparisons on tasks drawn with replacement from the observed ones.

    So the effect and its spread are taken as observed, which flatters a small lucky sample; `alpha` is what a
    corrected test would ask of this pair. Ties between draws, zeros included, are broken at random.
    """
    differences = np.asarray(differences, dtype=float)
    count = len(differences)
    if count < FEWEST_TASKS:
        return Power(count, alpha, None, goal, None)
    found = _found(differences, count, alpha, simulations)
    if found >= goal:
        return Power(count, alpha, found, goal, count)
    if _found(differences, MOST_TASKS, alpha, simulations) < goal:
        return Power(count, alpha, found, goal, None)
    low, high = count, MOST_TASKS
    while high - low > max(1, low // 12):  # the last few per cent are below the simulation's own error
        middle = (low + high) // 2
        if _found(differences, middle, alpha, simulations) >= goal:
            high = middle
        else:
            low = middle
    return Power(count, alpha, found, goal, high)


def fewest_tasks(alpha: float = 0.05) -> int:
    """Return the least number of tasks with which Wilcoxon's test can be significant at all (6 at 0.05)."""
    return next(tasks for tasks in range(1, 64) if smallest_p(tasks) <= alpha)


def frequency(share: float) -> str:
    """Return a share as words, such as "1 time in 3" for 0.33."""
    if share < 0.01:
        return "practically never"
    if share > 0.95:
        return "nearly always"
    ratio = Fraction(1, round(1 / share)) if share < 0.2 else Fraction(share).limit_denominator(5)
    if ratio == 1:
        ratio = Fraction(9, 10)
    return f"{ratio.numerator} {'time' if ratio.numerator == 1 else 'times'} in {ratio.denominator}"


def _found(differences: np.ndarray, tasks: int, alpha: float, simulations: int) -> float:
    rng = np.random.default_rng(0)
    drawn = rng.choice(differences, size=(simulations, tasks))
    jitter = 1e-9 * max(float(np.abs(differences).max()), 1e-300)
    drawn = drawn + rng.uniform(-jitter, jitter, size=drawn.shape)
    method = "exact" if tasks <= EXACT_TASKS else "asymptotic"
    return float((stats.wilcoxon(drawn, axis=1, method=method).pvalue <= alpha).mean())
