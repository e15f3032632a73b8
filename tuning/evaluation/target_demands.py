"""What a metric demands of the target: a percentage of 0 or the logarithm of a negative number means nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tuning.basics.wording import amount
from tuning.evaluation.metrics import ALIASES

NEARLY_ZERO = 1e-6  # of the median size of the targets: a percentage of that says nothing


@dataclass(frozen=True)
class TargetDemand:
    """A metric's demand.

    Attributes:
        met: which targets (n,) the metric can score.
        why: what is wrong with the others, as in "rmsle … in 3 of 90 rows".
        take: metrics that score them.
        above: what predictions have to be above.
    """

    met: Callable[[np.ndarray], np.ndarray]
    why: str
    take: str
    above: float = -math.inf


_LOGARITHM = TargetDemand(
    lambda y: y > -1.0, "takes the logarithm of 1 + the target, which is -1 or less", "rmse or mae", above=-1.0
)
DEMANDS = {
    "mape": TargetDemand(
        lambda y: np.abs(y) > NEARLY_ZERO * np.median(np.abs(y)),
        "divides by the target, which is 0 or nearly 0",
        "mae or rmse",
    ),
    "msle": _LOGARITHM,
    "rmsle": _LOGARITHM,
    "mean_poisson_deviance": TargetDemand(
        lambda y: y >= 0.0, "is for targets of at least 0, and the target is less", "rmse or mae", above=0.0
    ),
    "mean_gamma_deviance": TargetDemand(
        lambda y: y > 0.0,
        "is for targets above 0, and the target is 0 or less",
        "mean_poisson_deviance, where no target is below 0, or rmse",
        above=0.0,
    ),
}


def demand_of(metric: str | None) -> TargetDemand | None:
    """The demand of a metric, or of an alias of one; None where it scores any target."""
    return DEMANDS.get(ALIASES.get(metric or "", metric or ""))


def objection(metric: str, y: np.ndarray) -> str:
    """Why a metric cannot score targets (n,), and which one to take; empty where it can."""
    demand = demand_of(metric)
    wrong = 0 if demand is None else int((~demand.met(y)).sum())
    if demand is None or not wrong:
        return ""
    name = ALIASES.get(metric, metric)
    return f"{name} {demand.why} in {wrong} of {amount(len(y), 'row')}: take {demand.take}."
