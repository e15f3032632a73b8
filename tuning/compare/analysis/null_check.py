"""The A/A check: repetitions of one method, compared as if each were a method, must not differ.

They are the same method, so what Friedman's test finds among them is no difference between methods. It finds what
would also make the p-values of the comparison too small: customers that are no independent evidence (copies of each
other, or the same luck in all of them), and repetitions that were not run alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuning.compare.analysis.anytime import Anytime
from tuning.compare.analysis.statistics import TIE_DECIMALS, friedman, wilcoxon

# A correct comparison is suspected once in a thousand times.
SUSPICION = 0.001


@dataclass(frozen=True)
class NullCheck:
    """p of the test that the repetitions of a method differ, on so many tasks."""

    method: str
    repetitions: int
    tasks: int
    p: float

    @property
    def passed(self) -> bool:
        """False when repetitions of one method differ this much less than once in a thousand comparisons."""
        return self.p > SUSPICION


def null_check(result: Anytime, method: str) -> NullCheck | None:
    """Return whether the method's repetitions differ at the end of the budget.

    Tasks with fewer repetitions than usual are left out. None with one task or one repetition.
    """
    finals = [seeds[:, -1] for seeds in result.seeds[result.methods.index(method)]]
    repetitions = int(np.median([len(values) for values in finals]))
    table = np.array([values[:repetitions] for values in finals if len(values) >= repetitions])
    if repetitions < 2 or len(table) < 2:
        return None
    table = np.round(table, TIE_DECIMALS)
    p = wilcoxon(table[:, 0] - table[:, 1]).p if repetitions == 2 else friedman(table).p
    return NullCheck(method, repetitions, len(table), p)
