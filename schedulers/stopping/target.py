"""target: the study ends when a full trial has reached a score."""

from __future__ import annotations

from schedulers.direction import Mode, worth_of
from schedulers.protocols import Reason
from schedulers.stopping.rule import RuleSpec, StudyStopper


class TargetSpec(RuleSpec):
    """The study ends when a trial with its full budget has a score at least as good as this.

    Attributes:
        score: in the metric's own direction and units.
    """

    name = "target"
    summary = "ends the study when a full trial has reached a score"
    short = "score"

    score: float

    def build(self, *, metric: str, mode: Mode) -> StudyStopper:
        return TargetStopper(self.score, mode)


class TargetStopper(StudyStopper):
    """Knows whether the target has been reached."""

    def __init__(self, target: float, mode: Mode) -> None:
        self._target, self._mode = target, mode
        self._reached: Reason | None = None

    def on_trial_end(self, trial_id: str, finished: bool, score: float | None) -> None:
        if finished and score is not None and worth_of(score, self._mode) >= worth_of(self._target, self._mode):
            values = {"trial": trial_id, "score": score, "target": self._target}
            self._reached = Reason("target_reached", TargetSpec.name, values)

    def study_reason(self) -> Reason | None:
        return self._reached
