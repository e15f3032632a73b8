"""pb2: population based bandits (Parker-Holder et al. 2020, https://arxiv.org/abs/2002.02518)."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from pydantic import Field

from schedulers.direction import Mode
from schedulers.errors import SchedulerError
from schedulers.mutation import NO_MUTATIONS, Mutations, Range, parameter_place
from schedulers.pbt import WHY_NOT_LEARNING, Population
from schedulers.protocols import Controller, ScheduledTrial, Scheduler, TrialConfig
from schedulers.ray_classes import in_front_of_ray
from schedulers.spec import SchedulerSpec, Steps
from schedulers.study_scheduler import STEP


class Pb2Spec(SchedulerSpec):
    """As pbt, but a Gaussian process on the improvements seen so far proposes the new values.

    Each of its proposals takes some tenths of a second: for trials that are long themselves.

    Only numeric hyperparameters change, on a linear scale; the others stay as the donor has them.

    Attributes:
        perturbation_interval, quantile_fraction, synch: as for pbt.
    """

    name = "pb2"
    summary = "as pbt, with a Gaussian process that proposes the new numbers"
    needs_state = True
    stops = False
    pauses = True
    population = True
    mutates = True
    why = WHY_NOT_LEARNING

    perturbation_interval: Steps | None = None
    quantile_fraction: float = Field(default=0.25, gt=0.0, le=0.5)
    synch: bool = True

    def usable(self, mutations: Mutations) -> bool:
        return bool(_ranges(mutations))

    def build(
        self, *, metric: str, mode: Mode, max_steps: int, seed: int, mutations: Mutations = NO_MUTATIONS
    ) -> Scheduler:
        ranges = _ranges(mutations)
        if not ranges:
            raise SchedulerError(
                "scheduler pb2: no numeric hyperparameter of this search space can change during training; "
                "add one or use pbt"
            )
        return in_front_of_ray(Pb2Scheduler)(self, metric, mode, max_steps, seed, Mutations(ranges, mutations.allows))


class Pb2Scheduler(Population):
    """Ray's PB2 with values that stay in their ranges and on their steps."""

    ray_class = "ray.tune.schedulers.pb2.PB2"

    def __init__(self, spec: Pb2Spec, metric: str, mode: Mode, max_steps: int, seed: int, mutations: Mutations) -> None:
        self._ranges = _ranges(mutations)
        bounds: dict[str, Any] = {}  # nested as a configuration is
        for each in self._ranges:
            place = bounds
            for key in each.path[:-1]:
                place = place.setdefault(key, {})
            place[each.path[-1]] = [each.low, each.high]
        every = spec.perturbation_interval or math.ceil(max_steps / 10)
        super().__init__(
            time_attr=STEP,
            metric=metric,
            mode=mode,
            perturbation_interval=every,
            hyperparam_bounds=bounds,
            quantile_fraction=spec.quantile_fraction,
            log_config=False,
            synch=spec.synch,
            custom_explore_fn=self._snap,
        )
        self.set_up_population(spec, metric, mode, max_steps, seed, spec.synch, every)
        self._mutations = mutations
        self._draws = random.Random(f"{seed} hyperparameters")
        self._numpy_state: Any = np.random.RandomState(seed % 2**32).get_state(legacy=False)

    def on_trial_add(self, tune_controller: Controller, trial: ScheduledTrial) -> None:
        for each in self._ranges:
            if parameter_place(trial.config, each) is None:
                raise SchedulerError(
                    f"scheduler pb2: trial {trial.trial_id} has no hyperparameter {'.'.join(each.path)}; "
                    "pb2 needs every hyperparameter that it changes in every configuration, so use pbt"
                )
        super().on_trial_add(tune_controller, trial)

    def _get_new_config(
        self, trial: ScheduledTrial, trial_to_clone: ScheduledTrial
    ) -> tuple[TrialConfig, dict[str, object]]:
        config, operations = super()._get_new_config(trial, trial_to_clone)
        allows = self._mutations.allows
        if config == trial_to_clone.config or (allows is not None and not allows(config)):
            # Too little is known of the donor for the Gaussian process (Ray would train an exact copy), or
            # the search space does not allow what it proposes.
            config = self._mutations.vary(trial_to_clone.config, 0.25, (1.2, 0.8), self._draws)
        return config, operations

    def _snap(self, config: TrialConfig) -> TrialConfig:
        for each in self._ranges:
            place = parameter_place(config, each)
            if place is not None:
                place[each.path[-1]] = each.nearest(place[each.path[-1]])
        return config

    @contextmanager
    def _own_random(self) -> Iterator[None]:
        before = np.random.get_state(legacy=False)
        np.random.set_state(self._numpy_state)
        try:
            with super()._own_random(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the Gaussian process, at every fit
                yield
        finally:
            self._numpy_state = np.random.get_state(legacy=False)
            np.random.set_state(before)


def _ranges(mutations: Mutations) -> tuple[Range, ...]:
    """The numbers that exist in every configuration."""
    return tuple(
        each for each in mutations.parameters if isinstance(each, Range) and each.low < each.high and not each.when
    )
