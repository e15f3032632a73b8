"""pbt: population based training (Jaderberg et al. 2017, https://arxiv.org/abs/1711.09846)."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import Field, PositiveFloat, field_validator

from schedulers.direction import Mode, worth_of
from schedulers.errors import SchedulerError
from schedulers.mutation import NO_MUTATIONS, Mutations
from schedulers.protocols import Controller, ScheduledTrial, Scheduler, TrialConfig, TrialResult
from schedulers.ray_classes import InFrontOfRay, in_front_of_ray
from schedulers.spec import MOST_STEPS, SchedulerSpec, Steps
from schedulers.study_scheduler import STEP, StudyScheduler

WHY_NOT_LEARNING = "it changes configurations during training, so that scores teach an algorithm nothing"


class PbtSpec(SchedulerSpec):
    """A population trains together; the worst take over the best ones' models and change the hyperparameters.

    Attributes:
        perturbation_interval: steps between two such rounds; a tenth of a full trial, rounded up, if left out.
        burn_in_period: steps before the first round.
        quantile_fraction: share of the population that is replaced, and share it is replaced from.
        resample_probability: that a hyperparameter is drawn anew; if not, a number is multiplied by one of the
            perturbation_factors, within its range.
        synch: rounds take place when all trials have come equally far. Without it each trial decides at its own time
            with what it finds. On one slot it often finds nothing to take over.
    """

    name = "pbt"
    summary = "the worst of a population take over the best ones' models and vary their hyperparameters"
    needs_state = True
    stops = False
    pauses = True
    population = True
    mutates = True
    why = WHY_NOT_LEARNING

    perturbation_interval: Steps | None = None
    burn_in_period: int = Field(default=0, ge=0, le=MOST_STEPS)
    quantile_fraction: float = Field(default=0.25, gt=0.0, le=0.5)
    resample_probability: float = Field(default=0.25, ge=0.0, le=1.0)
    perturbation_factors: tuple[PositiveFloat, ...] = (1.2, 0.8)
    synch: bool = True

    @field_validator("perturbation_factors")
    @classmethod
    def _both_ways(cls, factors: tuple[float, ...]) -> tuple[float, ...]:
        if not factors or not min(factors) < 1 < max(factors):
            raise ValueError("needs one below 1 and one above 1, such as [1.2, 0.8]; else numbers drift one way only")
        return factors

    def usable(self, mutations: Mutations) -> bool:
        return bool(mutations.parameters)

    def build(
        self, *, metric: str, mode: Mode, max_steps: int, seed: int, mutations: Mutations = NO_MUTATIONS
    ) -> Scheduler:
        if not mutations.parameters:
            raise SchedulerError(
                "scheduler pbt: no hyperparameter of this search space can change during training; "
                "add a numeric parameter or use another scheduler"
            )
        return in_front_of_ray(PbtScheduler)(self, metric, mode, max_steps, seed, mutations)


class Population(InFrontOfRay, StudyScheduler):
    """What pbt and pb2 share: their own random states, diverged trials that can be rescued, a clear end."""

    #: A trial whose score is NaN continues until it takes over another one's model.
    rescues_diverged = True
    #: Whether a saved state is handed out again later, when its trial has already gone on.
    reuses_snapshots: bool

    def set_up_population(
        self,
        spec: SchedulerSpec,
        metric: str,
        mode: Mode,
        max_steps: int,
        seed: int,
        synch: bool,
        every: int,
        first: int = 0,
    ) -> None:
        self.set_up(spec, metric, mode, max_steps)
        self.reuses_snapshots = not synch
        self._every, self._first = every, first  # steps between two rounds, and before the first one
        self._range: tuple[float, float] | None = None
        self._random_state = random.Random(seed).getstate()
        # Ray would print several lines per exploit and study.
        logging.getLogger("ray.tune.schedulers.pbt").setLevel(logging.WARNING)

    def on_trial_result(self, tune_controller: Controller, trial: ScheduledTrial, result: TrialResult) -> str:
        step, score = self._read(result)
        if step >= self.max_steps:
            return "STOP"  # a model taken over now could not be trained any more
        if not self._due(trial, step):
            return "CONTINUE"
        if math.isfinite(score):
            worth = worth_of(score, self._mode)
            low, high = self._range or (worth, worth)
            self._range = min(low, worth), max(high, worth)
        else:
            result = {**result, self._key: self._worse_than_any()}
        with self._own_random():
            decision: str = super().on_trial_result(tune_controller, trial, result)
        return decision

    def choose_trial_to_run(self, tune_controller: Controller) -> ScheduledTrial | None:
        chosen = super().choose_trial_to_run(tune_controller)
        trials = tune_controller.get_trials()
        if chosen is not None or any(trial.status in ("RUNNING", "PENDING") for trial in trials):
            return chosen
        paused = [trial for trial in trials if trial.status == "PAUSED"]
        if not paused:
            return None
        # The last one to arrive ended or failed instead: Ray would wait for it forever. Hold the round now.
        with self._own_random():
            super().on_trial_result(tune_controller, paused[-1], self._trial_state[paused[-1]].last_result)
        return super().choose_trial_to_run(tune_controller)

    def steps_until_pause(self, trial: ScheduledTrial, done: int) -> float:
        round_after: int = self._trial_state[trial].last_perturbation_time + self._every
        return min(max(self._first, round_after), self.max_steps) - done

    def steps_of_next(self, coming: int) -> float:
        return min(max(self._first, self._every), self.max_steps)

    def _due(self, trial: ScheduledTrial, step: int) -> bool:
        """Whether Ray's class would do more than return CONTINUE."""
        since = step - self._trial_state[trial].last_perturbation_time
        return bool(step >= self._first and since >= self._every)

    def _worse_than_any(self) -> float:
        """A finite stand-in for NaN, worse than every score seen."""
        low, high = self._range or (0.0, 0.0)
        return worth_of(low - (high - low or 1.0), self._mode)

    @contextmanager
    def _own_random(self) -> Iterator[None]:
        """Ray draws from the process-wide generator: put this study's in its place for the length of the block."""
        before = random.getstate()
        random.setstate(self._random_state)
        try:
            yield
        finally:
            self._random_state = random.getstate()
            random.setstate(before)


class PbtScheduler(Population):
    """Ray's PBT with perturbations that respect the ranges."""

    ray_class = "ray.tune.schedulers.PopulationBasedTraining"

    def __init__(
        self,
        spec: PbtSpec,
        metric: str,
        mode: Mode,
        max_steps: int,
        seed: int,
        mutations: Mutations,
    ) -> None:
        every = spec.perturbation_interval or math.ceil(max_steps / 10)
        super().__init__(
            time_attr=STEP,
            metric=metric,
            mode=mode,
            perturbation_interval=every,
            burn_in_period=spec.burn_in_period,
            custom_explore_fn=self._vary,
            quantile_fraction=spec.quantile_fraction,
            log_config=False,
            synch=spec.synch,
        )
        self.set_up_population(spec, metric, mode, max_steps, seed, spec.synch, every, spec.burn_in_period)
        self._spec, self._mutations = spec, mutations
        self._draws = random.Random(f"{seed} hyperparameters")

    def _vary(self, config: TrialConfig) -> TrialConfig:
        spec = self._spec
        return self._mutations.vary(config, spec.resample_probability, spec.perturbation_factors, self._draws)
