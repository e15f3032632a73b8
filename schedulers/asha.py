"""asha: asynchronous successive halving (Li et al. 2020, https://arxiv.org/abs/1810.05934)."""

from __future__ import annotations

import math
import random
from bisect import insort

from pydantic import Field

from schedulers.direction import Mode, worth_of
from schedulers.mutation import NO_MUTATIONS, Mutations
from schedulers.protocols import Controller, Reason, ScheduledTrial, Scheduler, TrialResult
from schedulers.spec import ReductionFactor, SchedulerSpec, Steps
from schedulers.study_scheduler import InOrder


class AshaSpec(SchedulerSpec):
    """At each rung (a number of steps) only the best 1/reduction_factor seen there continue.

    Attributes:
        grace_period: steps every trial may run, and the first rung. Where a full trial is not longer than this,
            nothing is stopped.
        reduction_factor: rungs are grace_period * reduction_factor**k; the share kept at each is its inverse.
        brackets: number of brackets; bracket s has its first rung s rungs later. Trials are spread over them at
            random, the shorter brackets getting e times more.
    """

    name = "asha"
    summary = "stops a trial at a rung unless it is in the best 1/reduction_factor seen there"

    grace_period: Steps = 1
    reduction_factor: ReductionFactor = 3.0
    brackets: int = Field(default=1, ge=1, le=10)

    def build(
        self, *, metric: str, mode: Mode, max_steps: int, seed: int, mutations: Mutations = NO_MUTATIONS
    ) -> Scheduler:
        return AshaScheduler(self, metric, mode, max_steps, seed)


class AshaScheduler(InOrder):
    """Ray's ASHA with the same decisions, its own random generator, reasons, and a stop for NaN.

    The decisions are made here: Ray's spend 30 to 60 microseconds in `numpy.nanpercentile` at each rung, and
    never stop a NaN score.
    """

    def __init__(self, spec: AshaSpec, metric: str, mode: Mode, max_steps: int, seed: int) -> None:
        factor = spec.reduction_factor
        self.set_up(spec, metric, mode, max_steps)
        self._keep = 1.0 / factor
        self._random = random.Random(seed)
        firsts = (spec.grace_period * factor**s for s in range(spec.brackets))
        self._ladders = [_ladder(first, factor, max_steps) for first in firsts]
        self._weights = [math.exp(len(ladder)) for ladder in self._ladders]
        self._climbs: dict[str, _Climb] = {}

    def on_trial_add(self, tune_controller: Controller, trial: ScheduledTrial) -> None:
        ladder = self._ladders[0]
        if len(self._ladders) > 1:
            ladder = self._random.choices(self._ladders, self._weights)[0]
        self._climbs[trial.trial_id] = _Climb(ladder)

    def on_trial_result(self, tune_controller: Controller, trial: ScheduledTrial, result: TrialResult) -> str:
        step, score = self._read(result)
        trial_id = trial.trial_id
        if self._stop_not_finite(trial_id, step, score):
            return "STOP"
        if step >= self.max_steps:
            return "STOP"
        climb = self._climbs[trial_id]
        rung = climb.reach(step)
        if rung is None:
            return "CONTINUE"
        cutoff = rung.cutoff(self._keep)
        worth = worth_of(score, self._mode)
        insort(rung.scores, worth)
        if cutoff is None or worth >= cutoff:
            return "CONTINUE"
        values = {"rung": rung.steps, "score": score, "cutoff": worth_of(cutoff, self._mode)}
        self._reasons[trial_id] = Reason("rung_cutoff", self.name, values)
        return "STOP"

    def forget(self, trial: ScheduledTrial) -> None:
        self._climbs.pop(trial.trial_id, None)


class _Rung:
    """The scores seen at one number of steps, ascending, the better the larger."""

    __slots__ = ("scores", "steps")

    def __init__(self, steps: float) -> None:
        self.steps = steps
        self.scores: list[float] = []

    def cutoff(self, keep: float) -> float | None:
        """The (1 - keep) quantile, interpolated exactly as by `numpy.percentile`; None without scores."""
        scores = self.scores
        if not scores:
            return None
        position = (len(scores) - 1) * ((1.0 - keep) * 100 / 100)
        below = int(position)
        if below + 1 >= len(scores):
            return scores[-1]
        low, high, share = scores[below], scores[below + 1], position - below
        return low + (high - low) * share if share < 0.5 else high - (high - low) * (1.0 - share)


class _Climb:
    """Where one trial is on its ladder of rungs."""

    __slots__ = ("ladder", "next")

    def __init__(self, ladder: list[_Rung]) -> None:
        self.ladder = ladder
        self.next = 0

    def reach(self, step: int) -> _Rung | None:
        """The highest rung newly reached at this step, if any."""
        ladder, reached = self.ladder, self.next
        while reached < len(ladder) and step >= ladder[reached].steps:
            reached += 1
        if reached == self.next:
            return None
        self.next = reached
        return ladder[reached - 1]


def _ladder(first: float, factor: float, max_steps: int) -> list[_Rung]:
    rungs = []
    steps = first
    while steps < max_steps:
        rungs.append(_Rung(steps))
        steps *= factor
    return rungs
