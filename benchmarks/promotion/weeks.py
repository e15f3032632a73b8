"""Weeks of many customers: who is promoted when, rightly and falsely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.promotion.draws import Customers
from benchmarks.promotion.forms import FORMS
from tuning.champions.discoveries import e_bh

WEEKS, FALSE_DISCOVERIES = 8, 0.1
# Rows of a hold-out, which tell only how large differences usually are.
HOLD_OUT = 30


@dataclass(frozen=True)
class Outcome:
    """Of all repetitions.

    found: (weeks,) the share of truly better challengers that is promoted by the end of each week; NaN without any.
    false: (repetitions,) the share of false ones among the promoted of all weeks, 0 where nobody is promoted.
    falsely: the share of challengers that are no better and are promoted. worst_week: the mean share of false ones in
        the worst week.
    """

    found: np.ndarray
    false: np.ndarray
    falsely: float
    worst_week: float

    @property
    def false_share(self) -> float:
        """The rate of false discoveries over all weeks."""
        return float(self.false.mean())

    @property
    def error(self) -> float:
        """Its standard error."""
        return float(self.false.std() / np.sqrt(len(self.false)))


def weeks_of(form: str, customers: Customers, rows: int, repetitions: int, seed: int = 0) -> Outcome:
    """`WEEKS` weeks of new rows. Whoever is promoted stands no longer, and counts on with the evidence of that week."""
    better = customers.better
    found, false, falsely, weekly = np.zeros(WEEKS), np.zeros(repetitions), 0.0, np.zeros(WEEKS)
    for repetition in range(repetitions):
        rng = np.random.default_rng([seed, rows, repetition])
        gathered = FORMS[form](customers.draw(rng, HOLD_OUT), np.inf)
        promoted, stopped = np.zeros(len(better), bool), np.zeros(len(better))
        for week in range(WEEKS):
            gathered.see(customers.draw(rng, rows))
            stopped = np.where(promoted, stopped, gathered.log_e())
            new = e_bh(stopped, FALSE_DISCOVERIES).chosen & ~promoted
            promoted |= new
            found[week] += promoted[better].mean() / repetitions if better.any() else np.nan
            weekly[week] += (new & ~better).sum() / max(new.sum(), 1) / repetitions
        false[repetition] = (promoted & ~better).sum() / max(promoted.sum(), 1)
        falsely += promoted[~better].mean() / repetitions if not better.all() else 0.0
    return Outcome(found, false, falsely, float(weekly.max()))
