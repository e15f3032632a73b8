"""What every scheduler built here has: reasons for its stops, a measure of progress, no NaN that lives on."""

from __future__ import annotations

import math

from schedulers.direction import Mode
from schedulers.errors import SchedulerError
from schedulers.protocols import Controller, Reason, ScheduledTrial, TrialResult
from schedulers.spec import SchedulerSpec

STEP = "training_iteration"  # the only measure of progress: exact, and the same on every machine


class StudyScheduler:
    """Base of the schedulers here."""

    #: As in the spec.
    name: str
    pauses: bool
    population: bool
    #: Steps of a full trial: a STOP there is the end of the trial's budget, not an early stop.
    max_steps: int

    def set_up(self, spec: SchedulerSpec, metric: str, mode: Mode, max_steps: int) -> None:
        self.name, self.pauses, self.population = spec.name, spec.pauses, spec.population
        self.max_steps = max_steps
        self._key, self._mode = metric, mode
        self._reasons: dict[str, Reason] = {}

    def reason(self, trial_id: str) -> Reason | None:
        """Return why this trial was stopped before its last step; None if it was not."""
        return self._reasons.get(trial_id)

    def steps_until_pause(self, trial: ScheduledTrial, done: int) -> float:
        """How many steps a trial trains, after `done` of them, before it may have to wait for a decision.

        For whoever trains ahead of the decisions: more steps than needed cost time, and nothing else.
        """
        return self.max_steps - done

    def steps_of_next(self, coming: int) -> float:
        """The same for a trial that is not added yet, and before which `coming` others will be."""
        return self.max_steps

    def _read(self, result: TrialResult) -> tuple[int, float]:
        """Step and score (in the metric's own direction) of a result."""
        try:
            return result[STEP], result[self._key]
        except KeyError as error:
            # Ray's schedulers would continue and never stop anything.
            raise SchedulerError(
                f"scheduler {self.name}: a result has no {error.args[0]!r}, only {sorted(result)}; "
                f"every report needs {STEP!r} and the metric {self._key!r}"
            ) from None

    def _stop_not_finite(self, trial_id: str, step: int, score: float) -> bool:
        """Whether the score is NaN or infinite: Ray would never stop such a trial (no comparison holds)."""
        if math.isfinite(score):
            return False
        self._reasons[trial_id] = Reason("score_not_finite", self.name, {"score": str(score), "step": step})
        return True


class InOrder(StudyScheduler):
    """Base of those that start trials in the order in which they came and pause none: Ray is not needed."""

    def on_trial_add(self, tune_controller: Controller, trial: ScheduledTrial) -> None: ...

    def on_trial_complete(self, tune_controller: Controller, trial: ScheduledTrial, result: TrialResult) -> None:
        self.forget(trial)

    def on_trial_error(self, tune_controller: Controller, trial: ScheduledTrial) -> None:
        self.forget(trial)

    def on_trial_remove(self, tune_controller: Controller, trial: ScheduledTrial) -> None:
        self.forget(trial)

    def forget(self, trial: ScheduledTrial) -> None:
        """A trial has ended, in whatever way."""

    def choose_trial_to_run(self, tune_controller: Controller) -> ScheduledTrial | None:
        trials = tune_controller.get_trials()
        found = (trial for status in ("PENDING", "PAUSED") for trial in trials if trial.status == status)
        return next(found, None)
