"""Promote every challenger."""

from __future__ import annotations

import numpy as np

from tuning.champions.rules.rule import PromotionFigures, PromotionRule


class Newest(PromotionRule):
    """Whoever was found last."""

    name = "newest"
    summary = "promotes every challenger, better or not"

    def chosen(self, figures: PromotionFigures) -> np.ndarray:
        return np.ones(len(figures.rows), bool)

    def reason(self, figures: PromotionFigures, place: int, chosen: bool) -> str:
        return "the newest, by the rule"
