"""The decisions of one study, wherever its trials train: ask → add → step … step → complete.

Loops (`tuning.study.loop`, `tuning.study.ahead`) and `tuning.execution.spread.spread_study` train the trials and
feed the core, one event after another. It knows neither generators nor Ray's cluster nor records.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic

from schedulers.direction import worth_of
from schedulers.protocols import Scheduler
from tuning.basics.wording import raised
from tuning.errors import StudyError
from tuning.notes import EndCode, Note
from tuning.records.schema import FAILED, FINISHED, STOPPED
from tuning.study.cohort import Cohort, note_of
from tuning.study.interfaces import Configuration, ListeningSearcher, Rule, Searcher
from tuning.study.trial import ERROR, PENDING, TERMINATED, AnyStep, Verdict, not_finite
from tuning.study.trial_view import TrialT

STEP = "training_iteration"  # the key under which Ray's schedulers look for a trial's progress
CONTINUE, PAUSE, STOP = "CONTINUE", "PAUSE", "STOP"
#: The baseline, with which every score is compared, is never stopped early.
BASELINE_ONLY = frozenset({0})
RULE = "stopping rule"
NO_STEP = EndCode.NO_STEP()


def one_family(_config: Configuration) -> str:
    """Put all configurations into the same cohort."""
    return ""


class StudyCore(Generic[TrialT]):
    """One study's searcher, schedulers and stopping rules.

    new_trial: makes a trial from (number, id, configuration, family).
    scheduler_for: a new scheduler for the cohort of a configuration; called once per family.
    family: of a configuration. n_trials: at most so many are suggested.
    metric, mode: key and direction ("max", "min") of the objective towards searcher and schedulers.
    rules: built stopping rules. protect: numbers of trials that are never stopped early.

    The study has one clock, by which comparisons date a trial's score (`Trial.spent_steps`, `Trial.spent_seconds`). It
    counts every trained step, also of a trial that is paused or has since taken over another one's model, and the
    seconds of training and of the searcher.

    Raises `StudyError` when the searcher, a scheduler or a rule raises; the study cannot go on then.
    """

    def __init__(
        self,
        searcher: Searcher,
        scheduler_for: Callable[[Configuration], Scheduler],
        new_trial: Callable[[int, str, dict[str, object], str], TrialT],
        *,
        n_trials: int,
        metric: str,
        mode: str,
        family: Callable[[Configuration], str] = one_family,
        rules: Sequence[Rule] = (),
        protect: frozenset[int] = BASELINE_ONLY,
    ) -> None:
        self.searcher, self.scheduler_for, self.new_trial = searcher, scheduler_for, new_trial
        self.n_trials, self.metric, self.mode, self.family = n_trials, metric, mode, family
        self.rules, self.protect = rules, protect
        #: Why a rule has ended the study; None without one.
        self.stopped_by: Note | None = None
        #: Why there is nothing left to suggest (the budget or the space is used up); None while there may be.
        self.exhausted_by: Note | None = None
        self.cohorts: dict[str, Cohort[TrialT]] = {}
        #: Trials that have ended and that nobody has taken yet.
        self.outbox: deque[TrialT] = deque()
        self.suggested = 0
        #: The next position in the sequence of suggestions and ends.
        self.position = 0
        #: The clock. A trial that fails before its first step counts one step.
        self.spent_steps = 0
        self.spent_seconds = 0.0
        self._listener = searcher if isinstance(searcher, ListeningSearcher) else None
        self._recalled: dict[str, list[TrialT]] = {}  # by family, as long as its cohort has not begun

    @property
    def closed_by(self) -> Note | None:
        """Why no further trial is suggested; None while some may be."""
        return self.stopped_by or self.exhausted_by

    @property
    def ended_by(self) -> Note | None:
        """Why the study ends before its budget of trials is used up; None where it does not."""
        return self.stopped_by or (self.exhausted_by if self.suggested < self.n_trials else None)

    # Ask.

    def ask(self) -> TrialT | None:
        """Return the next trial; None when there is none now, or none any more (then `closed_by` says why)."""
        self.ask_rules()
        if not self.closed_by and self.suggested >= self.n_trials:
            self.exhausted_by = EndCode.ALL_TRIALS_DONE(trials=self.n_trials)
        return None if self.closed_by else self.suggest()

    def ask_rules(self) -> None:
        """Ask the stopping rules whether the study is to end."""
        with _Named(RULE, "deciding whether the study goes on"):
            for rule in self.rules:
                if not self.stopped_by and rule.stop_all():
                    self.stopped_by = note_of(rule.study_reason())

    def suggest(self, known: Configuration | None = None) -> TrialT | None:
        """Return the searcher's next trial, without asking rules or budget.

        known: the configuration that the trial had in an earlier attempt, which counts whatever is suggested now.
        """
        number = self.suggested
        trial_id = f"{number:05d}"
        before = time.perf_counter()
        with _Named("algorithm", f"proposing trial {number}"):
            config = self.searcher.suggest(trial_id)
            if known is not None and not (isinstance(config, dict) and same_config(config, known)):
                config = dict(known)
                self.searcher.adopt(trial_id, known)
        if config is None:
            return None
        if not isinstance(config, dict):
            self.exhaust()
            return None
        self.suggested += 1
        trial = self.new_trial(number, trial_id, config, self.family(config))
        trial.suggested = self._next_position()
        self._searched(trial, before)
        return trial

    def exhaust(self) -> None:
        """Note that the searcher has nothing more to suggest."""
        self.exhausted_by = EndCode.NO_CONFIGURATION_LEFT(trials=self.suggested)

    # The cohort.

    def cohort(self, trial: TrialT) -> Cohort[TrialT]:
        """Return the cohort of this trial's family; the first of the family founds it."""
        cohort = self.cohorts.get(trial.family)
        if cohort is None:
            with _Named("scheduler", f"being built for family {trial.family!r}"):
                scheduler = self.scheduler_for(trial.config)
            cohort = self.cohorts[trial.family] = Cohort(scheduler, self.searcher, self._end_waiting, self._expecting)
            for earlier in self._recalled.pop(trial.family, ()):
                with _Named("scheduler", f"hearing of trial {earlier.number} again"):
                    cohort.recall(earlier, [self._as_result(earlier, step.step, step.score) for step in earlier.steps])
        return cohort

    def add(self, trial: TrialT) -> None:
        """Let a trial into its cohort: from now on its scheduler is told of it."""
        cohort = self.cohort(trial)
        trial.in_cohort = True
        with _Named("scheduler", f"adding trial {trial.number}"):
            cohort.add(trial)

    def choose(self, cohort: Cohort[TrialT]) -> TrialT | None:
        """Return the pending or paused trial that the scheduler wants to run next."""
        with _Named("scheduler", "choosing the next trial"):
            return cohort.choose()

    def _expecting(self) -> bool:
        pending = any(trial.status == PENDING for cohort in self.cohorts.values() for trial in cohort.trials)
        return pending or not self.closed_by

    # Step.

    def step(self, trial: TrialT, step: AnyStep) -> str:
        """Return CONTINUE, PAUSE or STOP after the trial's last step; with STOP, `trial.verdict` says how it ends."""
        decision = self.on_trial_result(trial, step)
        if decision == STOP or not self.rules or trial.number in self.protect or self.is_full(trial):
            return decision
        with _Named(RULE, f"hearing step {step.step} of trial {trial.number}"):
            trial.verdict = self._rule_verdict(trial)
        return decision if trial.verdict is None else STOP

    def step_again(self, trial: TrialT, step: AnyStep) -> str:
        """As `step`, in a replay: rules are told of it and not asked, since their decisions are recorded."""
        decision = self.on_trial_result(trial, step)
        if decision != STOP:
            with _Named(RULE, f"hearing step {step.step} of trial {trial.number} again"):
                for rule in self.rules:
                    rule(trial.trial_id, trial.last_result)
        return decision

    def recall(self, trial: TrialT) -> None:
        """Take in the steps of a trial that an earlier attempt has recorded; its end is to follow.

        Its scheduler hears of it when its cohort begins: how long that is, only the cohort's next trial knows.
        """
        for step in trial.steps:
            self.spent_steps += 1
            trial.last_result = self._as_result(trial, step.step, step.score)
            with _Named("algorithm or rule", f"hearing step {step.step} of trial {trial.number} again"):
                if self._listener and step is not trial.steps[-1]:
                    self._listener.on_trial_result(trial.trial_id, trial.last_result)
                for rule in self.rules:
                    rule(trial.trial_id, trial.last_result)
        self._recalled.setdefault(trial.family, []).append(trial)

    def on_trial_result(self, trial: TrialT, step: AnyStep) -> str:
        """Return the scheduler's decision after a step. The searcher is told of the step unless it is the last."""
        self.spent_steps += 1
        self._charge(trial)
        cohort = self.cohorts[trial.family] if trial.in_cohort else None
        if not math.isfinite(step.score) and (cohort is None or not cohort.rescues_diverged):
            trial.verdict = Verdict(FAILED, not_finite(step))
            return STOP
        if cohort is None:
            return CONTINUE
        result = self._as_result(trial, step.step, step.score)
        with _Named("scheduler", f"judging trial {trial.number} at step {step.step}"):
            decision = cohort.on_trial_result(trial, result)
        trial.last_result = result
        if self._listener and decision != STOP:
            before = time.perf_counter()
            with _Named("algorithm", f"hearing step {step.step} of trial {trial.number}"):
                self._listener.on_trial_result(trial.trial_id, result)
            self._searched(trial, before)
        if trial.number in self.protect:
            return CONTINUE
        if decision == STOP:
            trial.verdict = self._stop_verdict(trial)
        return decision

    def _stop_verdict(self, trial: TrialT) -> Verdict:
        """Return the verdict on a trial that its scheduler stops: at the last step it has had its full budget."""
        return Verdict(FINISHED if self.is_full(trial) else STOPPED)

    def is_full(self, trial: TrialT) -> bool:
        """Return whether a trial has had its full budget."""
        cohort = self.cohorts.get(trial.family)
        budget = trial.shape.full_steps if cohort is None else min(cohort.max_steps, trial.shape.full_steps)
        return bool(trial.steps) and trial.steps[-1].step >= budget

    def _rule_verdict(self, trial: TrialT) -> Verdict | None:
        """Return the verdict of a stopping rule that ends this trial now; None while none does."""
        for rule in self.rules:
            if rule.stop_all():
                return Verdict(STOPPED, note_of(rule.study_reason()))
            # Where steps are folds, one that is no better says nothing about the next.
            if rule(trial.trial_id, trial.last_result) and trial.shape.progress:
                return Verdict(FINISHED, note_of(rule.reason(trial.trial_id)))
        return None

    # End.

    def reserve_end(self, trial: TrialT) -> None:
        """Reserve the next end for a trial that is about to train: it ends before all others, as if it were alone."""
        trial.told = self._next_position()
        trial.spent_steps, trial.spent_seconds = self.spent_steps, self.spent_seconds

    def complete(self, trial: TrialT) -> None:
        """End a trial by its verdict or by itself. Scheduler, searcher and rules are told; it goes into the outbox."""
        trial.release()
        trial.state, trial.reason = trial.verdict or (FINISHED, None)
        trial.best, trial.score = self._best(trial)
        if trial.state != FAILED and not trial.steps:
            trial.state, trial.reason = FAILED, NO_STEP
        elif trial.state != FAILED and not math.isfinite(trial.steps[-1].score):
            trial.state, trial.reason = FAILED, not_finite(trial.steps[-1])
        cohort = self.cohorts[trial.family] if trial.in_cohort else None
        if cohort is not None:
            with _Named("scheduler", f"hearing the end of trial {trial.number}"):
                cohort.complete(trial)
        trial.status = ERROR if trial.state == FAILED else TERMINATED
        if trial.state == STOPPED and not trial.reason and cohort is not None:
            trial.reason = cohort.reason(trial)
        self._tell(trial)
        with _Named(RULE, f"hearing the end of trial {trial.number}"):
            for rule in self.rules:
                rule.on_trial_end(trial.trial_id, trial.state == FINISHED, trial.score)
        if not trial.lineage:
            trial.schedule = ()
        if not trial.steps:
            self.spent_steps += 1
        self._charge(trial)
        if trial.told:  # reserved
            trial.spent_steps += max(1, len(trial.steps))
            trial.spent_seconds += trial.seconds
        else:
            trial.told = self._next_position()
            trial.spent_steps, trial.spent_seconds = self.spent_steps, self.spent_seconds
        self.outbox.append(trial)

    def _end_waiting(self, trial: TrialT) -> None:
        """End a trial that is paused or pending, for a scheduler."""
        trial.verdict = self._stop_verdict(trial)
        self.complete(trial)

    def _best(self, trial: TrialT) -> tuple[int | None, float | None]:
        """Position and score of the step that counts; of several steps, one with a finite score."""
        steps = trial.steps
        if not steps:
            return None, None
        position = len(steps) - 1
        if trial.shape.best_prefix:
            finite = [index for index, step in enumerate(steps) if math.isfinite(step.score)]
            position = max(finite, key=lambda index: worth_of(steps[index].score, self.mode), default=position)
        return position, steps[position].score

    def _tell(self, trial: TrialT) -> None:
        before = time.perf_counter()
        with _Named("algorithm", f"hearing the end of trial {trial.number}"):
            if trial.state == FAILED or trial.score is None:
                self.searcher.on_trial_complete(trial.trial_id, error=True)
            else:
                result = self._as_result(trial, trial.steps[-1].step, trial.score)
                if trial.state == STOPPED:
                    result["stopped"] = True  # an algorithm may weigh a score of half a budget differently
                self.searcher.on_trial_complete(trial.trial_id, result=result)
        self._searched(trial, before)

    def _as_result(self, trial: TrialT, step: int, score: float) -> dict[str, object]:
        return {STEP: step, self.metric: score, "trial_id": trial.trial_id, "config": trial.config}

    # The clock.

    def _charge(self, trial: TrialT) -> None:
        """Put a trial's seconds since the last call on the clock; those of a trial that began anew count twice."""
        self.spent_seconds += max(0.0, trial.seconds - trial.charged)
        trial.charged = trial.seconds

    def _searched(self, trial: TrialT, before: float) -> None:
        """Charge a trial for the searcher's work since `before`."""
        seconds = time.perf_counter() - before
        trial.suggest_seconds += seconds
        self.spent_seconds += seconds

    def _next_position(self) -> int:
        self.position += 1
        return self.position - 1


class _Named:
    """Ends the study where its searcher, a scheduler or a rule raises within the block; entered at each step."""

    __slots__ = ("doing", "part")

    def __init__(self, part: str, doing: str) -> None:
        self.part, self.doing = part, doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, StudyError):
            raise StudyError(EndCode.PART_FAILED(self.part, doing=self.doing, error=raised(error))) from error


def same_config(one: Configuration, other: Configuration) -> bool:
    """Return whether two configurations are the same after a way through JSON."""
    if one == other:
        return True
    return bool(json.loads(json.dumps(one, default=repr)) == json.loads(json.dumps(other, default=repr)))
