"""bohb: HyperBand for the BOHB algorithm (Falkner et al. 2018, https://arxiv.org/abs/1807.01774)."""

from __future__ import annotations

from schedulers.direction import Mode
from schedulers.hyperband import HyperbandScheduler
from schedulers.mutation import NO_MUTATIONS, Mutations
from schedulers.protocols import Controller, ScheduledTrial, Scheduler, TrialResult
from schedulers.ray_classes import in_front_of_ray
from schedulers.spec import ReductionFactor, SchedulerSpec


class BohbSpec(SchedulerSpec):
    """HyperBand that fills its largest bracket first and tells its algorithm the budget of every rung.

    Attributes:
        reduction_factor: as for hyperband.
    """

    name = "bohb"
    summary = "HyperBand that tells the BOHB algorithm the budget of every rung"
    pauses = True
    algorithms = frozenset({"bohb"})
    why = "it is HyperBand with what only the algorithm bohb makes use of"

    reduction_factor: ReductionFactor = 3.0

    def build(
        self, *, metric: str, mode: Mode, max_steps: int, seed: int, mutations: Mutations = NO_MUTATIONS
    ) -> Scheduler:
        return in_front_of_ray(BohbScheduler)(self, metric, mode, max_steps, self.reduction_factor)


class BohbScheduler(HyperbandScheduler):
    """Ray's HyperBand for BOHB; it has a way of its own to wait for a bracket to fill."""

    ray_class = "ray.tune.schedulers.HyperBandForBOHB"

    def on_trial_result(self, tune_controller: Controller, trial: ScheduledTrial, result: TrialResult) -> str:
        step, score = self._read(result)
        if self._stop_not_finite(trial.trial_id, step, score):
            return "STOP"
        return self._decide(tune_controller, trial, result)
