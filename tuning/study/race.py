"""The trials of one model family under their scheduler, which compares them with each other only."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from schedulers.protocols import Scheduler
from tuning.study.interfaces import Searcher
from tuning.study.trial import PAUSED, Trial

TrialT = TypeVar("TrialT", bound=Trial)


class Race(Generic[TrialT]):
    """A scheduler and its trials that have not ended, behind the interface of Ray's controller.

    end_trial: ends a trial that is paused or pending. expecting: whether the study may still bring trials.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        searcher: Searcher,
        end_trial: Callable[[TrialT], None],
        expecting: Callable[[], bool],
    ) -> None:
        self.scheduler, self.searcher = scheduler, searcher
        self._end_trial, self._expecting = end_trial, expecting
        #: Steps of a full trial of this race; a stop there is the end of a trial's budget.
        self.max_steps: float = getattr(scheduler, "max_steps", math.inf)
        #: A trial whose score is not finite goes on, since it may take over another one's model.
        self.rescues_diverged: bool = getattr(scheduler, "rescues_diverged", False)
        self.trials: list[TrialT] = []

    @property
    def search_alg(self) -> Race[TrialT]:
        """BOHB reaches its searcher through `search_alg.searcher`; PBT only checks the type."""
        return self

    @property
    def more_to_come(self) -> bool:
        """Whether trials are still to be suggested or started, so that a bracket may wait for them."""
        return self._expecting()

    def get_trials(self) -> list[TrialT]:
        return self.trials

    def get_live_trials(self) -> list[TrialT]:
        return [trial for trial in self.trials if not trial.is_finished()]

    def pause_trial(self, trial: TrialT, should_checkpoint: bool = True) -> None:
        trial.status = PAUSED

    def stop_trial(self, trial: TrialT) -> None:
        """End a paused or pending trial; the running one is stopped by the scheduler's decision."""
        if not trial.is_finished():
            self._end_trial(trial)

    def reason(self, trial: TrialT) -> str:
        """The scheduler's reason for a stop."""
        own: str = self.scheduler.reason(trial.trial_id) if hasattr(self.scheduler, "reason") else ""
        return own or f"{type(self.scheduler).__name__} stopped it after step {trial.steps[-1].step}"

    def _schedule_trial_save(self, trial: Any, result: object = None) -> object:
        """Ray's PBT asks for the state of a trial; only `tuning.study.local_trial.LocalTrial` has one."""
        snapshot = trial.checkpoint
        if getattr(self.scheduler, "reuses_snapshots", True):
            snapshot.take()
        return snapshot
