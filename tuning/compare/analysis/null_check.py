"""The A/A check: a method compared with itself must look different at the nominal rate and no more often.

Two searches by the same method, that is two halves of its seeds, are compared by the very test that the
comparison uses, many times over. A procedure that finds differences there finds luck.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from tuning.compare.analysis.anytime import Anytime
from tuning.compare.analysis.statistics import wilcoxon

REPEATS = 200
# A correct test is called broken once in a thousand comparisons.
SUSPICION = 0.001


@dataclass(frozen=True)
class NullCheck:
    """method against itself, `repeats` times: `rejected` of them at level `alpha`; p of so many or more by chance."""

    method: str
    repeats: int
    rejected: int
    alpha: float
    p: float

    @property
    def rate(self) -> float:
        return self.rejected / self.repeats

    @property
    def passed(self) -> bool:
        """False when a correct test would reject this often less than once in a thousand comparisons."""
        return self.p > SUSPICION

    def sentence(self) -> str:
        verdict = "as it should be" if self.passed else "MORE than its nominal rate: do not trust the p-values"
        return (
            f"A/A check: {self.method} against itself differs in {self.rate:.1%} of {self.repeats} splits of its seeds "
            f"(nominal: at most {self.alpha:.0%}), {verdict}."
        )


def null_check(result: Anytime, method: str, alpha: float = 0.05, repeats: int = REPEATS) -> NullCheck | None:
    """Split the method's seeds in two at random on every task and test the halves, again and again.

    None when no task has two seeds: there is nothing to compare it with.
    """
    finals = [seeds[:, -1] for seeds in result.seeds[result.methods.index(method)] if len(seeds) >= 2]
    if not finals:
        return None
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(repeats):
        differences = [_halves(rng.permutation(values)) for values in finals]
        rejected += wilcoxon(np.array(differences)).p <= alpha
    return NullCheck(method, repeats, rejected, alpha, float(stats.binom.sf(rejected - 1, repeats, alpha)))


def _halves(values: np.ndarray) -> float:
    half = len(values) // 2
    return float(values[:half].mean() - values[half : 2 * half].mean())
