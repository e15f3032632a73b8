"""What a scheduler sees of a study that is driven in process."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuning.study.loop import TrialLoop
    from tuning.study.trial import Trial


class ControllerView:
    """One family's unfinished trials, behind the interface of Ray's controller.

    pauses: whether the scheduler may pause; one from elsewhere is taken to (Ray has no way to ask).
    max_steps: steps of a full trial; a stop there is the end of a trial's budget.
    """

    def __init__(self, drive: TrialLoop, scheduler: Any) -> None:
        self.drive, self.scheduler = drive, scheduler
        self.pauses: bool = getattr(scheduler, "pauses", True)
        self.max_steps: float = getattr(scheduler, "max_steps", math.inf)
        self.trials: list[Trial] = []

    @property
    def search_alg(self) -> ControllerView:
        """BOHB reaches its searcher through `search_alg.searcher`; PBT only checks the type."""
        return self

    @property
    def searcher(self) -> Any:
        return self.drive.searcher

    @property
    def more_to_come(self) -> bool:
        """Whether trials are still to be proposed or started, so that a bracket may wait for them."""
        return not self.drive.ended or any(
            trial.status == "PENDING" for view in self.drive.views.values() for trial in view.trials
        )

    def get_trials(self) -> list[Trial]:
        return self.trials

    def get_live_trials(self) -> list[Trial]:
        return [trial for trial in self.trials if not trial.is_finished()]

    def pause_trial(self, trial: Trial, should_checkpoint: bool = True) -> None:
        trial.status = "PAUSED"

    def stop_trial(self, trial: Trial) -> None:
        """End a paused or pending trial; the running one is stopped by the scheduler's decision."""
        if not trial.is_finished():
            self.drive.finish(trial, self.drive.verdict(trial), "")

    def _schedule_trial_save(self, trial: Trial, result: Any = None) -> Any:
        snapshot = trial.checkpoint
        if getattr(self.scheduler, "reuses_snapshots", True):
            snapshot.take()
        return snapshot
