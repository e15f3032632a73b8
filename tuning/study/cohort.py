"""The trials of one model family under their scheduler, which compares them with each other only."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import Generic, cast

from schedulers.protocols import Reason, Scheduler, TrialResult
from tuning.notes import EndCode, Note
from tuning.notes.note import read
from tuning.records.schema import FAILED
from tuning.study.interfaces import Searcher
from tuning.study.local_trial import Snapshot
from tuning.study.trial import PAUSED, RUNNING
from tuning.study.trial_view import TrialT, TrialView


class Cohort(Generic[TrialT]):
    """A scheduler and its trials that have not ended; to the scheduler it is Ray's controller. Its errors are raised.

    end_trial: ends a trial that is paused or pending. expecting: whether the study may still bring trials.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        searcher: Searcher,
        end_trial: Callable[[TrialT], None],
        expecting: Callable[[], bool],
    ) -> None:
        self.scheduler = scheduler
        #: Steps of a full trial of this cohort; a stop there is the end of a trial's budget.
        self.max_steps: float = getattr(scheduler, "max_steps", math.inf)
        #: Whether all trials are suggested before the first one starts.
        self.population: bool = getattr(scheduler, "population", False)
        #: A trial with a score that is not finite goes on, since it may take over another one's model.
        self.rescues_diverged: bool = getattr(scheduler, "rescues_diverged", False)
        self._reuses_snapshots: bool = getattr(scheduler, "reuses_snapshots", True)
        #: BOHB reaches its searcher through `search_alg.searcher`; PBT only checks the type.
        self.search_alg = SimpleNamespace(searcher=searcher)
        self._end_trial, self._expecting = end_trial, expecting
        self._views: dict[TrialT, TrialView[TrialT]] = {}

    # For the study.

    @property
    def trials(self) -> Collection[TrialT]:
        """Those that have not ended, in the order in which they were added."""
        return self._views.keys()

    def add(self, trial: TrialT) -> None:
        """Take a trial in, and tell the scheduler."""
        view = self._views[trial] = TrialView(trial, self._reuses_snapshots)
        self.scheduler.on_trial_add(self, view)

    def on_trial_result(self, trial: TrialT, result: TrialResult) -> str:
        """Return what the scheduler says of a trial's step, one of Ray's words."""
        return self.scheduler.on_trial_result(self, self._views[trial], result)

    def choose(self) -> TrialT | None:
        """Return the pending or paused trial that the scheduler wants to run next."""
        chosen = cast(TrialView[TrialT] | None, self.scheduler.choose_trial_to_run(self))
        return None if chosen is None else chosen.trial

    def complete(self, trial: TrialT) -> None:
        """Let a trial go that has ended in its state, and tell the scheduler."""
        view = self._views.pop(trial)
        if trial.status != RUNNING:
            self.scheduler.on_trial_remove(self, view)
        elif trial.state == FAILED:
            self.scheduler.on_trial_error(self, view)
        else:
            self.scheduler.on_trial_complete(self, view, trial.last_result)

    def recall(self, trial: TrialT, results: Sequence[TrialResult]) -> None:
        """Tell the scheduler of a trial that has ended in an earlier attempt, with these results of its steps."""
        status, trial.status = trial.status, RUNNING
        self.add(trial)
        for trial.last_result in results:
            self.on_trial_result(trial, trial.last_result)
        self.complete(trial)
        trial.status = status

    def forget(self, trial: TrialT) -> None:
        """Let a trial go that has never started."""
        del self._views[trial]

    def steps_until_pause(self, trial: TrialT) -> float:
        """Return how many steps a trial trains from here on, before it may have to wait for a decision."""
        done = trial.steps[-1].step if trial.steps else 0
        return self.scheduler.steps_until_pause(self._views[trial], done)

    def reason(self, trial: TrialT) -> Note:
        """Return the scheduler's reason for a stop."""
        found: Reason | None = self.scheduler.reason(trial.trial_id) if hasattr(self.scheduler, "reason") else None
        return note_of(found) or EndCode.STOPPED_AT_STEP(type(self.scheduler).__name__, step=trial.steps[-1].step)

    # For schedulers: what they call of Ray's controller.

    @property
    def more_to_come(self) -> bool:
        """Whether trials are still to be suggested or started, so that a bracket may wait for them."""
        return self._expecting()

    def get_trials(self) -> list[TrialView[TrialT]]:
        return list(self._views.values())

    def get_live_trials(self) -> list[TrialView[TrialT]]:
        return [view for view in self._views.values() if not view.is_finished()]

    def pause_trial(self, view: TrialView[TrialT], should_checkpoint: bool = True) -> None:
        view.trial.status = PAUSED

    def stop_trial(self, view: TrialView[TrialT]) -> None:
        """End a paused or pending trial; the running one is stopped by the scheduler's decision."""
        if not view.is_finished():
            self._end_trial(view.trial)

    def _schedule_trial_save(self, view: TrialView[TrialT], result: object = None) -> Snapshot:
        """Ray's PBT asks for the state of a trial that runs."""
        snapshot = view.checkpoint
        if snapshot.reused:
            snapshot.keep()
        return snapshot


def note_of(reason: Reason | None) -> Note | None:
    """Return the note of what a scheduler or a stopping rule gives as its reason."""
    return None if reason is None else read(reason.code, reason.name, reason.values)
