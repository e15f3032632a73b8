"""What a metric demands of the target: a percentage of 0 or the logarithm of a negative number means nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tuning.evaluation.metrics import ALIASES
from tuning.notes import DataCode, Note

NEARLY_ZERO = 1e-6  # of the median size of the targets: a percentage of that says nothing


@dataclass(frozen=True)
class TargetDemand:
    """A metric's demand.

    Attributes:
        met: which targets (n,) the metric can score.
        why: what is wrong with the others, and which metrics score them.
        above: what predictions have to be above.
    """

    met: Callable[[np.ndarray], np.ndarray]
    why: DataCode
    above: float = -math.inf


_LOGARITHM = TargetDemand(lambda y: y > -1.0, DataCode.NO_LOGARITHM, above=-1.0)
DEMANDS = {
    "mape": TargetDemand(lambda y: np.abs(y) > NEARLY_ZERO * np.median(np.abs(y)), DataCode.ZERO_TARGETS),
    "msle": _LOGARITHM,
    "rmsle": _LOGARITHM,
    "mean_poisson_deviance": TargetDemand(lambda y: y >= 0.0, DataCode.NEGATIVE_TARGETS, above=0.0),
    "mean_gamma_deviance": TargetDemand(lambda y: y > 0.0, DataCode.NO_POSITIVE_TARGETS, above=0.0),
}


def demand_of(metric: str | None) -> TargetDemand | None:
    """Return the demand of a metric, or of an alias of one; None where it scores any target."""
    return DEMANDS.get(ALIASES.get(metric or "", metric or ""))


def objection(metric: str, y: np.ndarray) -> Note | None:
    """Return why a metric cannot score targets (n,), and which one to take; None where it can."""
    demand = demand_of(metric)
    wrong = 0 if demand is None else int((~demand.met(y)).sum())
    if demand is None or not wrong:
        return None
    return demand.why(metric=ALIASES.get(metric, metric), wrong=wrong, rows=len(y))
