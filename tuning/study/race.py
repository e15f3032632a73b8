"""The trials of one model family under their scheduler, which compares them with each other only."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Generic, cast

from schedulers.protocols import Reason, Scheduler, TrialResult
from tuning.notes import EndCode, Note
from tuning.notes.note import read
from tuning.records.schema import FAILED
from tuning.study.interfaces import Searcher
from tuning.study.scheduler_view import ControllerView, TrialT, TrialView
from tuning.study.trial import RUNNING


class Race(Generic[TrialT]):
    """A scheduler and its trials that have not ended. What the scheduler raises is raised.

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
        #: Steps of a full trial of this race; a stop there is the end of a trial's budget.
        self.max_steps: float = getattr(scheduler, "max_steps", math.inf)
        #: Whether all trials are suggested before the first one starts.
        self.population: bool = getattr(scheduler, "population", False)
        #: A trial whose score is not finite goes on, since it may take over another one's model.
        self.rescues_diverged: bool = getattr(scheduler, "rescues_diverged", False)
        self._reuses_snapshots: bool = getattr(scheduler, "reuses_snapshots", True)
        self._views: dict[TrialT, TrialView[TrialT]] = {}
        self._controller = ControllerView(self._views, searcher, end_trial, expecting)

    @property
    def trials(self) -> Collection[TrialT]:
        """Those that have not ended, in the order in which they were added."""
        return self._views.keys()

    def add(self, trial: TrialT) -> None:
        view = self._views[trial] = TrialView(trial, self._reuses_snapshots)
        self.scheduler.on_trial_add(self._controller, view)

    def judge(self, trial: TrialT, result: TrialResult) -> str:
        """What the scheduler says of a trial's step, one of Ray's words."""
        return self.scheduler.on_trial_result(self._controller, self._views[trial], result)

    def choose(self) -> TrialT | None:
        """The pending or paused trial that the scheduler wants to run next."""
        chosen = cast(TrialView[TrialT] | None, self.scheduler.choose_trial_to_run(self._controller))
        return None if chosen is None else chosen.trial

    def end(self, trial: TrialT) -> None:
        """A trial has ended in its state: it leaves, and the scheduler hears of it."""
        view = self._views.pop(trial)
        if trial.status != RUNNING:
            self.scheduler.on_trial_remove(self._controller, view)
        elif trial.state == FAILED:
            self.scheduler.on_trial_error(self._controller, view)
        else:
            self.scheduler.on_trial_complete(self._controller, view, trial.last_result)

    def recall(self, trial: TrialT, results: Sequence[TrialResult]) -> None:
        """Tell the scheduler of a trial that has ended in an earlier attempt, with these results of its steps."""
        status, trial.status = trial.status, RUNNING
        self.add(trial)
        for trial.last_result in results:
            self.judge(trial, trial.last_result)
        self.end(trial)
        trial.status = status

    def forget(self, trial: TrialT) -> None:
        """A trial leaves that has never started."""
        del self._views[trial]

    def steps_until_pause(self, trial: TrialT) -> float:
        """How many steps a trial trains from here on, before it may have to wait for a decision."""
        done = trial.steps[-1].step if trial.steps else 0
        return self.scheduler.steps_until_pause(self._views[trial], done)

    def reason(self, trial: TrialT) -> Note:
        """Return the scheduler's reason for a stop."""
        found: Reason | None = self.scheduler.reason(trial.trial_id) if hasattr(self.scheduler, "reason") else None
        return note_of(found) or EndCode.STOPPED_AT_STEP(type(self.scheduler).__name__, step=trial.steps[-1].step)


def note_of(reason: Reason | None) -> Note | None:
    """Return the note of what a scheduler or a stopping rule gives as its reason."""
    return None if reason is None else read(reason.code, reason.name, reason.values)
