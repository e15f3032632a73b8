"""What training code yields: one step after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Step:
    """One intermediate report of a trial (a fold, a block of boosting rounds, an epoch).

    Attributes:
        step: 1, 2, 3, … within the trial.
        score: the objective, in the metric's own direction.
        fold_scores: the score of each fold seen so far; empty where there are none.
        metrics: further named figures to record.
        get_state: returns what a later generator needs to continue from here; only called when it is needed
            (PBT's exploit, a checkpoint), so that building it costs nothing otherwise.
        seconds: what the step took, where that was measured before (a replay); by default it is measured when it comes.
    """

    step: int
    score: float
    fold_scores: tuple[float, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    get_state: Callable[[], object] | None = None
    seconds: float | None = None
