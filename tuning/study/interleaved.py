"""The pool: trials of schedulers that pause, as suspended generators that take turns in this process.

The order follows Ray's controller with one slot: a pending trial is kept in hand as long as there are
more, and the scheduler chooses which pending or paused trial runs next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuning.records.schema import FAILED, FINISHED, STOPPED
from tuning.study.trial import FinishedTrial, Trial, not_finite

if TYPE_CHECKING:
    from tuning.study.controller_view import ControllerView
    from tuning.study.loop import TrialLoop


def run_interleaved(drive: TrialLoop, first: Trial) -> Iterator[FinishedTrial]:
    """Run `first` and all further trials of a study, taking turns; they come out as they end."""
    _enter(drive, first)
    if getattr(first.scheduler, "population", False):
        while (trial := drive.propose()) is not None:
            _enter(drive, trial)
    while (ready := _next(drive)) is not None:
        _advance(drive, ready)
        while drive.finished:
            yield drive.finished.popleft()
    for view in drive.views.values():
        for trial in list(view.trials):
            # A rule has ended the study, or the scheduler waits for something that will not come.
            if not trial.steps:
                view.trials.remove(trial)  # it never started
            elif drive.complete(trial):
                drive.finish(trial, FINISHED, "")
            else:
                waiting = f"{type(view.scheduler).__name__} paused it after step {trial.steps[-1].step} for good"
                drive.finish(trial, STOPPED, drive.over or waiting)
    while drive.finished:
        yield drive.finished.popleft()


def _enter(drive: TrialLoop, trial: Trial) -> None:
    if trial.number in drive.protect:
        drive.run_through(trial)
        return
    trial.schedule = ((0, dict(trial.config)),)
    drive.add(trial)


def _next(drive: TrialLoop) -> Trial | None:
    """The trial that runs next, in whichever family; None when none can."""
    while True:
        drive.check_over()
        if drive.over:
            return None
        if not any(trial.status == Trial.PENDING for view in drive.views.values() for trial in view.trials):
            trial = drive.propose()
            if trial is not None:
                _enter(drive, trial)
                continue
            if drive.over:
                return None
        for view in drive.views.values():
            if view.trials and (chosen := _choose(drive, view)) is not None:
                return chosen
        return None


def _choose(drive: TrialLoop, view: ControllerView) -> Trial | None:
    try:
        chosen: Trial | None = view.scheduler.choose_trial_to_run(view)
    except Exception as error:
        drive.fail_study("scheduler", "choosing the next trial", error)
    return chosen


def _advance(drive: TrialLoop, trial: Trial) -> None:
    """Let a trial run until its scheduler pauses or stops it, or it ends."""
    scheduler = trial.scheduler
    if trial.status == Trial.PENDING:
        drive.begin(trial)
    trial.status = Trial.RUNNING
    if drive.complete(trial):
        drive.finish(trial, FINISHED, "")
        return
    while (step := trial.pull(drive.start)) is not None:
        if not math.isfinite(step.score) and not getattr(scheduler, "rescues_diverged", False):
            drive.finish(trial, FAILED, not_finite(step))
            return
        decision = drive.consult(trial, step)
        if decision == "STOP":
            drive.finish(trial, drive.verdict(trial), "")
            return
        if drive.rules and (ruled := drive.rule(trial)) is not None:
            drive.finish(trial, *ruled)
            return
        if decision != "CONTINUE" or trial.status != Trial.RUNNING:
            trial.status = Trial.PAUSED
            if drive.complete(trial):
                trial.drop_state()  # nothing left to train; the scheduler still counts it
            return
    drive.finish(trial, FAILED if trial.error else FINISHED, "")
