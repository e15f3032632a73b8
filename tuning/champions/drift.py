"""Whether a champion is worse on new rows than its hold-out promised.

A loss is never below 0, so how much a row can be better than promised is known, and bets on "worse than promised" are
exact for every distribution of losses.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuning.champions.discoveries import e_bh
from tuning.champions.evidence import Evidence

DRIFTS = "drifts"  # the outcome of a champion that is worse than promised, beside those of challengers


def drift_start() -> Evidence:
    """Before the first new row of a champion; it begins anew with another champion, or another promise."""
    return Evidence.start(np.empty(0), bound=1.0)


def drift_after(
    evidence: Evidence, losses: np.ndarray, hold_out_loss: float, tolerance: float, hold_out_error: float = 0.0
) -> Evidence:
    """With the champion's losses (n,) on new rows.

    hold_out_loss: the mean loss that was promised; one of 0 promises nothing that a share could be added to.
    tolerance: by which share it may be worse. hold_out_error: the standard error of the promise, of which two are
        allowed on top: a hold-out of few rows promises little.
    """
    allowed = (1.0 + tolerance) * hold_out_loss + 2.0 * hold_out_error
    return evidence.after(losses / allowed - 1.0) if allowed > 0 else evidence


@dataclass(frozen=True)
class LossSoFar:
    """What a champion has lost on all rows that were new to it, and the evidence that this is more than was promised.

    rows: how many; groups and moments count as one row. loss: the sum.
    """

    evidence: Evidence
    rows: int = 0
    loss: float = 0.0

    @property
    def mean(self) -> float:
        """The mean loss; there has to be a row."""
        return self.loss / self.rows

    def after(
        self, losses: np.ndarray, hold_out_loss: float, tolerance: float, hold_out_error: float = 0.0
    ) -> LossSoFar:
        """With losses (n,) on new rows; the rest as of `drift_after`."""
        evidence = drift_after(self.evidence, losses, hold_out_loss, tolerance, hold_out_error)
        return LossSoFar(evidence, self.rows + len(losses), self.loss + float(losses.sum()))

    def to_json(self) -> str:
        """As it is kept in a release."""
        return json.dumps({"evidence": self.evidence.to_dict(), "rows": self.rows, "loss": self.loss})

    @classmethod
    def of_json(cls, text: str | None) -> LossSoFar:
        """What `to_json` has written; without a text the beginning."""
        if text is None:
            return cls(drift_start())
        values = json.loads(text)
        return cls(Evidence.of_dict(values["evidence"]), values["rows"], values["loss"])


@dataclass(frozen=True)
class Drift:
    """One champion that was looked at.

    loss: its mean on the new rows. drifts: whether it is tuned anew, and first. moved: which column's values have moved
    most, in words; empty where that is not known. metric: as users read it.
    """

    customer: str
    loss: float
    hold_out_loss: float
    rows: int
    e_value: float
    threshold: float
    drifts: bool
    moved: str = ""
    metric: str = ""


def drifting(
    customers: Sequence[str],
    evidence: Sequence[Evidence],
    loss: Sequence[float],
    hold_out_loss: Sequence[float],
    false_discoveries: float,
) -> list[Drift]:
    """Who drifts, by e-BH over all, the surest first."""
    log_e = np.array([float(each.log_e()) for each in evidence])
    found = e_bh(log_e, false_discoveries)
    values = np.exp(np.minimum(log_e, 700.0))
    columns = zip(customers, loss, hold_out_loss, evidence, values, found.needed, found.chosen, strict=True)
    rows = [
        Drift(customer, new, promised, int(each.rows), float(e), float(needed), bool(chosen))
        for customer, new, promised, each, e, needed, chosen in columns
    ]
    return sorted(rows, key=lambda row: -row.e_value)
