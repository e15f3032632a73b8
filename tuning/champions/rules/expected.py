"""Promote who is expected to be better."""

from __future__ import annotations

import numpy as np

from tuning.champions.rules.rule import PromotionFigures, PromotionRule
from tuning.champions.shrinkage import most_no_better


class Expected(PromotionRule):
    """By the gain that is left when luck is taken off, once challengers of a size are surely better as a group."""

    name = "expected"
    summary = (
        "promotes who has an expected gain, where challengers of customers of that size are surely better as a group"
    )

    def chosen(self, figures: PromotionFigures) -> np.ndarray:
        better = figures.shrunken_gain > figures.least_gain
        return better & figures.group_sure & ~figures.metric_worse

    def reason(self, figures: PromotionFigures, place: int, chosen: bool) -> str:
        gain, least = figures.shrunken_gain[place], figures.least_gain
        expected = f"expected gain {gain:.2%}, measured {figures.gain[place]:.2%}"
        if figures.metric_worse[place]:
            return f"{expected}; the metric itself is not as good on the new rows"
        if not figures.group_sure[place]:
            return f"{expected}; challengers of customers of {figures.group[place]} are not surely better as a group"
        return expected if chosen else f"{expected}: not above {least:.2%}"

    def said_of_all(self, figures: PromotionFigures, chosen: np.ndarray) -> str:
        if not chosen.any():
            return ""
        spread = float(figures.no_better[chosen].sum())
        equal = most_no_better(figures.gain, chosen, figures.least_gain)
        low, high = sorted((round(spread), equal))
        return (
            f"Of {int(chosen.sum()):,} promoted {low:,} to {high:,} are likely no better, the fewer if true gains are "
            "spread around their mean, the more if most challengers are exactly as good. All together they gain."
        )
