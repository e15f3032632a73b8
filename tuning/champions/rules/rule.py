"""What a rule of promotion is: who is promoted, given the figures of all comparisons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tuning.champions.discoveries import Discoveries

#: What becomes of a challenger: it serves from now on, is written into a proposal, is given up, or stands on.
PROMOTED, PROPOSED, BEATEN, STANDS = "promoted", "proposed", "beaten", "stands"


@dataclass(frozen=True)
class PromotionFigures:
    """What rules look at, of n challengers.

    rows: (n,) that both have predicted. e_value, gain: (n,) as measured.
    discoveries: by e-BH over all of them; none whose metric is worse.
    metric_worse: (n,) whether the metric itself is worse, or unknown, where losses of rows do not say all.
    shrunken_gain: (n,) held back towards the mean of all. no_better: (n,) how likely it is not above `least_gain`, if
        true gains are spread around their mean.
    group: (n,) the name of the customers' size. group_sure: (n,) whether challengers of that size are better as a
        group.
    """

    rows: np.ndarray
    e_value: np.ndarray
    gain: np.ndarray
    discoveries: Discoveries
    metric_worse: np.ndarray
    shrunken_gain: np.ndarray
    no_better: np.ndarray
    group: np.ndarray
    group_sure: np.ndarray
    least_gain: float


class PromotionRule(ABC):
    """Base of all rules. A subclass in its own file of this package is a new rule.

    Attributes:
        name: the word used in definitions.
        summary: one sentence for the table.
        outcome: what becomes of those that are chosen.
        of_faulty: what becomes of the challenger of a champion that cannot serve any more.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    outcome: ClassVar[str] = PROMOTED
    of_faulty: ClassVar[str] = PROMOTED

    @abstractmethod
    def chosen(self, figures: PromotionFigures) -> np.ndarray:
        """(n,) which challengers are promoted."""

    @abstractmethod
    def reason(self, figures: PromotionFigures, place: int, chosen: bool) -> str:
        """Why this one is, or is not."""

    def said_of_all(self, figures: PromotionFigures, chosen: np.ndarray) -> str:
        """A sentence on those that are promoted, together; empty where there is nothing to say."""
        return ""
