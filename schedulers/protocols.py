"""What a scheduler is given and what it answers: the part of Ray Tune's interface that is used here.

Trials and controllers are Ray's own, or those of a study that is driven in process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

#: Name -> value of a trial's hyperparameters. Values are numbers, text, lists or nested mappings.
TrialConfig: TypeAlias = dict[str, Any]
#: What a trial reported: the metric, `training_iteration`, and what the training adds.
TrialResult: TypeAlias = Mapping[str, Any]


class Reason(NamedTuple):
    """Why a scheduler or a stopping rule has ended something.

    Attributes:
        code: the kind of decision, such as `rung_cutoff`.
        name: of the scheduler or the rule, as in the definition.
        values: the figures of the decision: scores in the metric's own direction, steps, numbers of trials.
    """

    code: str
    name: str
    values: Mapping[str, object]


class ScheduledTrial(Protocol):
    """The part of a trial that a scheduler looks at."""

    @property
    def trial_id(self) -> str: ...

    @property
    def config(self) -> TrialConfig: ...

    @property
    def status(self) -> str:
        """ "PENDING", "RUNNING", "PAUSED", "TERMINATED" or "ERROR"."""

    @property
    def last_result(self) -> TrialResult: ...


class Controller(Protocol):
    """Who runs the trials; in process it also says by `more_to_come` whether trials are still to be started."""

    def get_trials(self) -> Sequence[ScheduledTrial]: ...


class Scheduler(Protocol):
    """A built scheduler: the part of Ray's `TrialScheduler` that a study needs, and why it stopped a trial.

    Attributes:
        name: as in the spec.
        pauses: whether trials are paused and continued later.
        population: whether all trials are proposed before the first one starts.
        max_steps: steps of a full trial. A STOP there is the end of the trial's budget, not an early stop.
    """

    name: str
    pauses: bool
    population: bool
    max_steps: int

    def on_trial_add(self, tune_controller: Controller, trial: ScheduledTrial) -> None: ...

    def on_trial_result(self, tune_controller: Controller, trial: ScheduledTrial, result: TrialResult) -> str:
        """ "CONTINUE", "PAUSE" or "STOP"."""

    def on_trial_complete(self, tune_controller: Controller, trial: ScheduledTrial, result: TrialResult) -> None: ...

    def on_trial_error(self, tune_controller: Controller, trial: ScheduledTrial) -> None: ...

    def on_trial_remove(self, tune_controller: Controller, trial: ScheduledTrial) -> None: ...

    def choose_trial_to_run(self, tune_controller: Controller) -> ScheduledTrial | None: ...

    def steps_until_pause(self, trial: ScheduledTrial, done: int) -> float:
        """How many steps a trial trains, after `done` of them, before it may have to wait for a decision."""

    def steps_of_next(self, coming: int) -> float:
        """The same for a trial that is not added yet, and before which `coming` others will be."""

    def reason(self, trial_id: str) -> Reason | None:
        """Return why this trial was stopped before its last step; None if it was not."""
