"""study_plateau: the study ends when the last so many trials brought nothing better."""

from __future__ import annotations

from pydantic import Field

from schedulers.direction import Mode, worth_of
from schedulers.protocols import Reason
from schedulers.stopping.rule import RuleSpec, StudyStopper


class StudyPlateauSpec(RuleSpec):
    """The study ends when this many trials in a row, of whatever end, brought no better full trial.

    Attributes:
        trials: how many.
        min_delta: by how much a score must be better than the best so far to count, in the metric's units.
    """

    name = "study_plateau"
    summary = "ends the study when so many trials in a row brought no better full one"
    short = "trials"

    trials: int = Field(ge=1)
    min_delta: float = Field(default=0.0, ge=0.0)

    def build(self, *, metric: str, mode: Mode) -> StudyStopper:
        return StudyPlateauStopper(self, mode)


class StudyPlateauStopper(StudyStopper):
    """Counts the trials since the last better one."""

    def __init__(self, spec: StudyPlateauSpec, mode: Mode) -> None:
        self._spec, self._mode = spec, mode
        self._best: float | None = None
        self._since = 0

    def on_trial_end(self, trial_id: str, finished: bool, score: float | None) -> None:
        self._since += 1
        if not finished or score is None:
            return
        worth = worth_of(score, self._mode)
        if self._best is None or worth > self._best + self._spec.min_delta:
            self._best, self._since = worth, 0

    def study_reason(self) -> Reason | None:
        if self._best is None or self._since < self._spec.trials:
            return None
        values = {"best": worth_of(self._best, self._mode), "trials": self._since}
        return Reason("study_plateau", self._spec.name, values)
