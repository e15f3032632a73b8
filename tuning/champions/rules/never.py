"""Promote nobody."""

from __future__ import annotations

import numpy as np

from tuning.champions.rules.rule import STANDS, PromotionFigures, PromotionRule


class Never(PromotionRule):
    """Champions stay until somebody promotes others."""

    name = "never"
    summary = "promotes nobody; comparisons go on and are shown"
    of_faulty = STANDS

    def chosen(self, figures: PromotionFigures) -> np.ndarray:
        return np.zeros(len(figures.rows), bool)

    def reason(self, figures: PromotionFigures, place: int, chosen: bool) -> str:
        return "nobody is promoted, by the rule"
