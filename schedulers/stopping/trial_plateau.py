"""trial_plateau: a trial ends when its last so many steps brought nothing better."""

from __future__ import annotations

from pydantic import Field

from schedulers.direction import Mode, worth_of
from schedulers.protocols import Reason, TrialResult
from schedulers.stopping.rule import RuleSpec, StudyStopper
from schedulers.study_scheduler import STEP


class TrialPlateauSpec(RuleSpec):
    """A trial whose score has not become better for this many steps is finished: more would not help it.

    Such a trial can win: with its best step where every step gives a model (rounds, epochs), an objective's with its
    last. Where steps are folds the rule does nothing.

    Attributes:
        steps: how many.
        min_delta: by how much a score must be better than the trial's best to count, in the metric's units.
    """

    name = "trial_plateau"
    summary = "finishes a trial when so many steps in a row brought nothing better"
    short = "steps"

    steps: int = Field(ge=1)
    min_delta: float = Field(default=0.0, ge=0.0)

    def build(self, *, metric: str, mode: Mode) -> StudyStopper:
        return TrialPlateauStopper(self, metric, mode)


class TrialPlateauStopper(StudyStopper):
    """Remembers each running trial's best score and the step it came at."""

    def __init__(self, spec: TrialPlateauSpec, metric: str, mode: Mode) -> None:
        self._spec, self._metric, self._mode = spec, metric, mode
        self._best: dict[str, tuple[float, int]] = {}

    def __call__(self, trial_id: str, result: TrialResult) -> bool:
        step, worth = result[STEP], worth_of(result[self._metric], self._mode)
        best = self._best.get(trial_id)
        if best is None or worth > best[0] + self._spec.min_delta:
            self._best[trial_id] = (worth, step)
            return False
        return bool(step - best[1] >= self._spec.steps)

    def on_trial_end(self, trial_id: str, finished: bool, score: float | None) -> None:
        self._best.pop(trial_id, None)

    def reason(self, trial_id: str) -> Reason:
        worth, step = self._best[trial_id]
        return Reason("trial_plateau", self._spec.name, {"best": worth_of(worth, self._mode), "step": step})
