"""hyperband: synchronous successive halving in brackets (Li et al. 2018, https://arxiv.org/abs/1603.06560)."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schedulers.direction import Mode, worth_of
from schedulers.mutation import NO_MUTATIONS, Mutations
from schedulers.protocols import Controller, Reason, ScheduledTrial, Scheduler, TrialResult
from schedulers.ray_classes import InFrontOfRay, in_front_of_ray
from schedulers.spec import ReductionFactor, SchedulerSpec
from schedulers.study_scheduler import STEP, StudyScheduler

if TYPE_CHECKING:
    from ray.tune.schedulers.hyperband import _Bracket


class HyperbandSpec(SchedulerSpec):
    """Fills brackets of trials; at each rung all of a bracket wait, and the best 1/reduction_factor continue.

    Attributes:
        reduction_factor: the share kept at a rung is its inverse; also the ratio of a rung's steps to the last one's.
    """

    name = "hyperband"
    summary = "halves brackets of paused trials, from many short ones to few full ones"
    pauses = True

    reduction_factor: ReductionFactor = 3.0

    def build(
        self, *, metric: str, mode: Mode, max_steps: int, seed: int, mutations: Mutations = NO_MUTATIONS
    ) -> Scheduler:
        return in_front_of_ray(HyperbandScheduler)(self, metric, mode, max_steps, self.reduction_factor)


@dataclass
class _Places:
    """Those of a bracket. size: trials that it begins with; added: trials so far; band: the number of its band."""

    size: int
    band: int
    added: int = 0

    @property
    def free(self) -> int:
        return self.size - self.added


class HyperbandScheduler(InFrontOfRay, StudyScheduler):
    """Ray's HyperBand with reasons, a stop for NaN, and no trial left paused forever."""

    ray_class = "ray.tune.schedulers.HyperBandScheduler"

    def __init__(self, spec: SchedulerSpec, metric: str, mode: Mode, max_steps: int, reduction_factor: float) -> None:
        super().__init__(
            time_attr=STEP,
            metric=metric,
            mode=mode,
            max_t=max_steps,
            reduction_factor=reduction_factor,
        )
        self.set_up(spec, metric, mode, max_steps)
        halvings = round(math.log(max_steps) / math.log(reduction_factor))
        self._shortest = max(1, int(max_steps * reduction_factor**-halvings))  # steps of any bracket's first rung
        self._places: dict[_Bracket, _Places] = {}  # of each bracket, in the order of their first trials
        # Ray's class for BOHB says several times per study that a bracket is not full yet.
        logging.getLogger("ray.tune.schedulers").setLevel(logging.WARNING)

    def on_trial_add(self, tune_controller: Controller, trial: ScheduledTrial) -> None:
        if self._places and not self._last().free:
            self._state["bracket"] = None  # it has had its share; Ray would refill it as trials leave
        super().on_trial_add(tune_controller, trial)
        bracket, band = self._trial_info[trial]
        self._places.setdefault(bracket, _Places(bracket._n, band)).added += 1

    def _last(self) -> _Places:
        return next(reversed(self._places.values()))

    def on_trial_result(self, tune_controller: Controller, trial: ScheduledTrial, result: TrialResult) -> str:
        step, score = self._read(result)
        if self._stop_not_finite(trial.trial_id, step, score):
            return "STOP"
        bracket = self._trial_info[trial][0]
        if self._waits_for_more(tune_controller, bracket):
            bracket.update_trial_stats(trial, result)
            return "CONTINUE" if bracket.continue_trial(trial) else "PAUSE"
        return self._decide(tune_controller, trial, result)

    def _decide(self, controller: Controller, trial: ScheduledTrial, result: TrialResult) -> str:
        """Ray's decision, with the reason of a stop."""
        decision: str = super().on_trial_result(controller, trial, result)
        # Ray never takes this mark back, so that a later error would leave the bracket waiting forever.
        self._trial_info[trial][0].is_being_processed = False
        if decision == "STOP":
            self._explain(trial, *self._read(result))
        return decision

    def _waits_for_more(self, controller: Controller, bracket: _Bracket) -> bool:
        """Whether a bracket is still being filled (with trials of other families in between)."""
        return self._places[bracket].free > 0 and getattr(controller, "more_to_come", False)

    def on_trial_remove(self, tune_controller: Controller, trial: ScheduledTrial) -> None:
        bracket = self._trial_info[trial][0]
        if trial.status == "PAUSED" and trial.last_result:
            self._explain(trial, *self._read(trial.last_result))
        processing = bracket.is_being_processed
        if trial in bracket.current_trials() and not processing:
            bracket._n -= 1  # it failed or ended by itself: nobody waits for it
        bracket.is_being_processed = processing or self._waits_for_more(tune_controller, bracket)
        super().on_trial_remove(tune_controller, trial)
        bracket.is_being_processed = processing

    def _explain(self, trial: ScheduledTrial, step: int, score: float) -> None:
        if step >= self.max_steps:
            return
        bracket = self._trial_info[trial][0]
        results = [each.last_result for each in bracket.current_trials() if each.last_result]
        kept = sorted((worth_of(result[self._key], self._mode) for result in results), reverse=True)[: bracket._n]
        worst = {"worst": worth_of(kept[-1], self._mode)} if kept else {}
        values = {"step": step, "score": score, "kept": bracket._n, **worst}
        code = "not_among_best_of" if kept else "not_among_best"
        self._reasons.setdefault(trial.trial_id, Reason(code, self.name, values))

    def steps_until_pause(self, trial: ScheduledTrial, done: int) -> float:
        bracket = self._trial_info[trial][0]
        waits = trial.status == "PAUSED" and trial not in bracket.trials_to_unpause
        return 0 if waits else bracket._cumul_r - done

    def steps_of_next(self, coming: int) -> float:
        if self._places and coming < self._last().free:
            return next(reversed(self._places))._cumul_r
        return self._shortest  # it may be any bracket's

    def choose_trial_to_run(self, tune_controller: Controller) -> ScheduledTrial | None:
        chosen = self._ready()
        if chosen is not None or getattr(tune_controller, "more_to_come", False):
            return chosen
        if any(trial.status == "RUNNING" for trial in tune_controller.get_trials()):
            return None
        # Nobody else is coming: brackets that are not full continue with what they have.
        for bracket in self._brackets():
            if any(trial.status == "PAUSED" for trial in bracket.current_trials()):
                self._process_bracket(tune_controller, bracket)
                bracket.is_being_processed = False
        return self._ready()

    def _ready(self) -> ScheduledTrial | None:
        """A trial that is new or may continue, of the oldest band's least complete bracket."""
        for bracket in self._brackets():
            for trial in bracket.current_trials():
                unpaused = trial.status == "PAUSED" and trial in bracket.trials_to_unpause
                if unpaused or trial.status == "PENDING":
                    return trial
        return None

    def _brackets(self) -> list[_Bracket]:
        return sorted(self._places, key=lambda each: (self._places[each].band, each.completion_percentage()))
