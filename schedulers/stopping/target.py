"""target: the study ends when a full trial has reached a score."""

from __future__ import annotations

from schedulers.protocols import Reason
from schedulers.ray_classes import in_front_of_ray
from schedulers.spec import Mode
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
        return in_front_of_ray(TargetStopper)(self.score, mode)


class TargetStopper(StudyStopper):
    """Knows whether the target has been reached."""

    def __init__(self, target: float, mode: Mode) -> None:
        self._target, self._sign = target, 1.0 if mode == "max" else -1.0
        self._reached: Reason | None = None

    def on_trial_end(self, trial_id: str, finished: bool, score: float | None) -> None:
        if finished and score is not None and self._sign * score >= self._sign * self._target:
            values = {"trial": trial_id, "score": score, "target": self._target}
            self._reached = Reason("target_reached", TargetSpec.name, values)

    def study_reason(self) -> Reason | None:
        return self._reached
