"""Drives one study's searcher and schedulers in this process: suggest → step → decide → tell.

Works with any Ray `Searcher` and `TrialScheduler`, without a cluster and without Ray's controller.
Schedulers that never pause run one trial after another; the others get a pool of suspended generators
(`tuning/study/interleaved.py`).
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NoReturn

from tuning.errors import StudyError
from tuning.records.schema import FAILED, FINISHED, STOPPED
from tuning.steps import Step
from tuning.study.controller_view import ControllerView
from tuning.study.interleaved import run_interleaved
from tuning.study.trial import AnyStep, EarlierTrial, FinishedTrial, Start, Trial, not_finite

STEP = "training_iteration"  # the key under which Ray's schedulers look for a trial's progress


class ReplayError(StudyError):
    """Replaying a study's records does not give the same search again; the study has to run anew."""


def one_family(_config: Mapping[str, Any]) -> str:
    """All configurations take part in the same race."""
    return ""


def last_counts(_config: Mapping[str, Any]) -> bool:
    """A trial's score is that of its last step."""
    return False


def endless(_config: Mapping[str, Any]) -> float:
    """A trial is as long as the longest one of its race."""
    return math.inf


@dataclass(eq=False)
class TrialLoop(Iterator[FinishedTrial]):
    """The finished trials of one study, in the order in which they end.

    searcher: a Ray `Searcher`, its space already set.
    scheduler_for: a new scheduler for a model family; called once per family, since rungs are only
        compared within one.
    start: (config, number, state) -> generator of `Step`; see `tuning.study.trial.Start`.
    trials: at most this many.
    metric, mode: key and direction ("max", "min") of the objective towards searcher and schedulers.
    family: of a configuration.
    best_prefix: whether every prefix of this configuration's steps is a model of its own, so that the
        best step counts and not the last.
    progress: whether this configuration's steps are one training's progress (folds are not); only such a trial
        ends on its plateau. Default: as best_prefix.
    full_steps: of a trial with this configuration; the scheduler's `max_steps` are those of the longest one.
    protect: numbers of trials that are never stopped early.
    replay: the study's first trials as recorded by an earlier attempt. They are suggested, decided and
        told again, without being run or yielded. Only for schedulers that do not pause.
    rules: built stopping rules (`schedulers.stopping`).
    on_start: called with a trial's number just before its training starts.

    Iterating raises `StudyError` when the searcher or a scheduler raises, and `ReplayError` when a replay
    takes another way than recorded. An exception in training only fails its trial.
    """

    searcher: Any
    scheduler_for: Callable[[str], Any]
    start: Start
    trials: int = field(kw_only=True)
    metric: str = field(kw_only=True)
    mode: str = field(kw_only=True)
    family: Callable[[Mapping[str, Any]], str] = field(default=one_family, kw_only=True)
    best_prefix: Callable[[Mapping[str, Any]], bool] = field(default=last_counts, kw_only=True)
    progress: Callable[[Mapping[str, Any]], bool] | None = field(default=None, kw_only=True)
    full_steps: Callable[[Mapping[str, Any]], float] = field(default=endless, kw_only=True)
    protect: frozenset[int] = field(default=frozenset({0}), kw_only=True)
    replay: Sequence[EarlierTrial] = field(default=(), kw_only=True)
    rules: Sequence[Any] = field(default=(), kw_only=True)
    on_start: Callable[[int], None] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        #: Why no trial is proposed any more: the budget or the space is used up; a stopping rule says so.
        self.exhausted, self.over = "", ""
        self.views: dict[str, ControllerView] = {}
        self.finished: deque[FinishedTrial] = deque()
        self._proposed = self._events = 0
        known = {trial.number: trial for trial in self.replay}
        # What comes after a gap was proposed knowing the missing trial: it has to run again.
        self._earlier = deque(known[number] for number in range(_first_gap(known)))
        self._listens = _listens(self.searcher)
        self._run = self._trials()

    @property
    def ended(self) -> str:
        """Why no further trial is proposed; empty while some may be."""
        return self.over or self.exhausted

    def __next__(self) -> FinishedTrial:
        return next(self._run)

    def close(self) -> None:
        """End between two trials; suspended ones are dropped without being told to anybody."""
        self._run.close()
        for view in self.views.values():
            for trial in view.trials:
                trial.drop_state()

    def _trials(self) -> Generator[FinishedTrial, None, None]:
        while (trial := self.propose()) is not None:
            if self._earlier:
                self._again(trial, self._earlier.popleft())
            elif trial.view.pauses and trial.number not in self.protect:
                yield from run_interleaved(self, trial)
                return
            else:
                self.run_through(trial)
            while self.finished:
                yield self.finished.popleft()

    # One trial after another.

    def run_through(self, trial: Trial) -> None:
        """Run a trial to its end; under a scheduler that pauses that is outside of its race."""
        racing = not trial.view.pauses
        if racing:
            self.add(trial)
        self.begin(trial)
        protected = trial.number in self.protect
        state, reason = FINISHED, ""
        while (step := trial.pull(self.start)) is not None:
            if not math.isfinite(step.score):
                state, reason = FAILED, not_finite(step)
                break
            decision = self.consult(trial, step) if racing else "CONTINUE"
            if protected:
                continue
            if decision == "STOP":
                state = self.verdict(trial)
                break
            if self.rules and (ruled := self.rule(trial)) is not None:
                state, reason = ruled
                break
        self.finish(trial, state, reason, racing=racing)

    def _again(self, trial: Trial, earlier: EarlierTrial) -> None:
        """Feed a recorded trial to searcher and scheduler as if it had just run."""
        if not same_config(trial.config, earlier.config):
            self._differs(trial, f"was recorded with {dict(earlier.config)}, now comes with {trial.config}")
        if trial.view.pauses:
            self._differs(trial, "belongs to a scheduler that pauses trials: such a study restarts whole")
        for rule in self.rules:
            rule.on_replay(earlier.seconds)
        self.add(trial)
        trial.status = Trial.RUNNING
        for position, step in enumerate(earlier.steps, 1):
            trial.steps.append(Step(step.step, step.score))
            if not math.isfinite(step.score):
                break
            stop = self.consult(trial, step) == "STOP" and trial.number not in self.protect
            if stop and position < len(earlier.steps):
                self._differs(trial, f"went on after step {step.step}, now its scheduler stops it there")
        self.finish(trial, earlier.state, "", racing=True)
        self.finished.clear()

    def _differs(self, trial: Trial, how: str) -> NoReturn:
        raise ReplayError(
            f"trial {trial.number} {how}. The definition, the data or a library has changed since; run the study anew."
        )

    # What both ways of running share.

    def propose(self) -> Trial | None:
        """The next suggestion as a pending trial; None when there are no more (then `ended` says why)."""
        self.check_over()
        if not self.ended and self._proposed >= self.trials:
            self.exhausted = f"all {self.trials} trials are done"
        if self.ended:
            return None
        number = self._proposed
        trial_id = f"{number:05d}"
        before = time.perf_counter()
        try:
            config = self.searcher.suggest(trial_id)
        except Exception as error:
            self.fail_study("algorithm", f"proposing trial {number}", error)
        seconds = time.perf_counter() - before
        if not isinstance(config, dict):  # None, or Searcher.FINISHED
            self.exhausted = f"the algorithm has no configuration after {number} trials"
            return None
        self._proposed += 1
        family = self.family(config)
        if family not in self.views:
            try:
                self.views[family] = ControllerView(self, self.scheduler_for(family))
            except Exception as error:
                self.fail_study("scheduler", f"being built for family {family!r}", error)
        trial = Trial(number, trial_id, config, family, self.views[family])
        trial.suggest_seconds, trial.suggested = seconds, self._event()
        return trial

    def check_over(self) -> None:
        """Ask the stopping rules whether the study is over."""
        for rule in self.rules:
            if not self.over and rule.stop_all():
                self.over = rule.study_reason()

    def add(self, trial: Trial) -> None:
        """Enter a trial into its scheduler's race."""
        trial.view.trials.append(trial)
        try:
            trial.scheduler.on_trial_add(trial.view, trial)
        except Exception as error:
            self.fail_study("scheduler", f"adding trial {trial.number}", error)

    def begin(self, trial: Trial) -> None:
        """A trial's training is about to start."""
        trial.started = time.time()
        trial.status = Trial.RUNNING
        if self.on_start is not None:
            self.on_start(trial.number)

    def consult(self, trial: Trial, step: AnyStep) -> str:
        """The scheduler's decision after a step; the searcher hears of the step unless it is the end."""
        result = self._as_result(trial, step.step, step.score)
        try:
            decision: str = trial.scheduler.on_trial_result(trial.view, trial, result)
        except Exception as error:
            self.fail_study("scheduler", f"judging trial {trial.number} at step {step.step}", error)
        trial.last_result = result
        if self._listens and decision != "STOP":
            try:
                self.searcher.on_trial_result(trial.trial_id, result)
            except Exception as error:
                self.fail_study("algorithm", f"hearing step {step.step} of trial {trial.number}", error)
        return decision

    def verdict(self, trial: Trial) -> str:
        """The state of a trial that its scheduler stops: at its last step it has had its full budget."""
        return FINISHED if self.complete(trial) else STOPPED

    def complete(self, trial: Trial) -> bool:
        """Whether a trial has had its full budget."""
        budget = min(trial.view.max_steps, self.full_steps(trial.config))
        return bool(trial.steps) and trial.steps[-1].step >= budget

    def _why(self, trial: Trial) -> str:
        """The scheduler's reason for a stop."""
        scheduler, step = trial.scheduler, trial.steps[-1].step
        reason = scheduler.reason(trial.trial_id) if hasattr(scheduler, "reason") else ""
        return reason or f"{type(scheduler).__name__} stopped it after step {step}"

    def rule(self, trial: Trial) -> tuple[str, str] | None:
        """State and reason when a stopping rule ends this trial now."""
        if self.complete(trial):
            return None  # it has come to its end by itself, and counts in full
        for rule in self.rules:
            if rule.stop_all():
                return STOPPED, rule.study_reason()
            # Where steps are folds, one that is no better says nothing about the next.
            if rule(trial.trial_id, trial.last_result) and (self.progress or self.best_prefix)(trial.config):
                return FINISHED, rule.reason(trial.trial_id)
        return None

    def finish(self, trial: Trial, state: str, reason: str, *, racing: bool = True) -> None:
        """End a trial: free it, tell scheduler (if it was racing) and searcher, queue it for the caller."""
        trial.drop_state()
        best, score = self._best(trial)
        if trial.error is not None:
            state, reason = FAILED, trial.failure
        elif score is None and state != FAILED:
            state, reason = FAILED, "training ended without a single step"
        elif state != FAILED and not math.isfinite(trial.steps[-1].score):
            state, reason = FAILED, not_finite(trial.steps[-1])
        if racing:
            self._leave(trial, state)
        trial.status = Trial.ERROR if state == FAILED else Trial.TERMINATED
        if state == STOPPED and not reason:
            reason = self._why(trial)
        self._tell(trial, state, score)
        for rule in self.rules:
            rule.on_trial_end(trial.trial_id, state == FINISHED, score)
        self.finished.append(
            FinishedTrial(
                number=trial.number,
                config=trial.config,
                family=trial.family,
                state=state,
                reason=reason,
                steps=tuple(trial.steps),
                step_seconds=tuple(trial.step_seconds),
                best=best,
                score=score,
                suggested=trial.suggested,
                told=self._event(),
                started=trial.started,
                seconds=trial.seconds,
                fit_seconds=trial.fit_seconds,
                suggest_seconds=trial.suggest_seconds,
                steps_run=trial.steps_run,
                error=trial.error,
                lineage=trial.lineage,
                schedule=trial.schedule if trial.lineage else (),
            )
        )

    def _best(self, trial: Trial) -> tuple[int | None, float | None]:
        """Position and score of the step that counts; among several a score that is not finite never does."""
        steps = trial.steps
        if not steps:
            return None, None
        position = len(steps) - 1
        if self.best_prefix(trial.config):
            finite = [index for index, step in enumerate(steps) if math.isfinite(step.score)]
            pick = max if self.mode == "max" else min
            position = pick(finite, key=lambda index: steps[index].score, default=position)
        return position, steps[position].score

    def _leave(self, trial: Trial, state: str) -> None:
        scheduler, view = trial.scheduler, trial.view
        view.trials.remove(trial)
        try:
            if trial.status != Trial.RUNNING:
                scheduler.on_trial_remove(view, trial)
            elif state == FAILED:
                scheduler.on_trial_error(view, trial)
            else:
                scheduler.on_trial_complete(view, trial, trial.last_result)
        except Exception as error:
            self.fail_study("scheduler", f"hearing the end of trial {trial.number}", error)

    def _tell(self, trial: Trial, state: str, score: float | None) -> None:
        before = time.perf_counter()
        try:
            if state == FAILED or score is None:
                self.searcher.on_trial_complete(trial.trial_id, error=True)
            else:
                result = self._as_result(trial, trial.steps[-1].step, score)
                if state == STOPPED:
                    result["stopped"] = True  # an algorithm may weigh a score of half a budget differently
                self.searcher.on_trial_complete(trial.trial_id, result=result)
        except Exception as error:
            self.fail_study("algorithm", f"hearing the end of trial {trial.number}", error)
        trial.suggest_seconds += time.perf_counter() - before

    def _as_result(self, trial: Trial, step: int, score: float) -> dict[str, Any]:
        return {STEP: step, self.metric: score, "trial_id": trial.trial_id, "config": trial.config}

    def _event(self) -> int:
        self._events += 1
        return self._events - 1

    def fail_study(self, part: str, doing: str, error: Exception) -> NoReturn:
        """The study ends because its searcher or scheduler raised."""
        if isinstance(error, StudyError):
            raise error
        raise StudyError(f"the {part} failed while {doing}: {type(error).__name__}: {error}") from error


def _first_gap(numbers: Collection[int]) -> int:
    return next(number for number in count() if number not in numbers)


def same_config(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two configurations are the same after a way through JSON."""
    if one == other:
        return True
    return bool(json.loads(json.dumps(one, default=repr)) == json.loads(json.dumps(other, default=repr)))


def _listens(searcher: Any) -> bool:
    """Whether a searcher does anything with intermediate results (Ray's base class ignores them)."""
    from ray.tune.search import Searcher

    return getattr(type(searcher), "on_trial_result", None) is not Searcher.on_trial_result
