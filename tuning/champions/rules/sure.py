"""Promote who is surely better."""

from __future__ import annotations

import numpy as np

from tuning.champions.rules.rule import PromotionFigures, PromotionRule


class Sure(PromotionRule):
    """By the evidence of new rows; a small share of the promoted may be no better."""

    name = "sure"
    summary = "promotes who is better by the evidence of new rows; a share `false_discoveries` of them may be no better"

    def chosen(self, figures: PromotionFigures) -> np.ndarray:
        return figures.discoveries.chosen

    def reason(self, figures: PromotionFigures, place: int, chosen: bool) -> str:
        rows, e, needed = figures.rows[place], figures.e_value[place], figures.discoveries.needed[place]
        seen = f"{rows:,} new {'row' if rows == 1 else 'rows'}"
        if figures.metric_worse[place]:
            return f"the metric itself is not as good on {seen}"
        if chosen:
            return f"better on {seen}: e-value {e:,.4g}, {needed:,.4g} is enough"
        return f"not sure on {seen}: e-value {e:,.3g}, {needed:,.4g} would be enough"
