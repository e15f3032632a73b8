"""BOHB's model (Falkner, Klein & Hutter 2018): kernel densities of good and bad trials at the largest budget.

Driven through hpbandster's generator rather than Ray's `TuneBOHB`, because that wrapper hears results only
from Ray's own HyperBand for BOHB, drops steps, hands out NumPy text and draws from the process's random
state. The branches of a conditional space get one generator each, asked one after the other, so that a
branch's model starts after its own few trials rather than after as many as the whole space has parameters.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from pydantic import Field

from search_spaces.algorithms.base import Algorithm, Candidates
from search_spaces.conditions import holds
from search_spaces.direction import Mode, loss_of
from search_spaces.parameters import Choice, Parameter
from search_spaces.proposer import Outcome, Proposer, Result
from search_spaces.random_state import OwnedState
from search_spaces.space import SearchSpace
from search_spaces.values import Configuration, Point, When

if TYPE_CHECKING:
    from hpbandster.optimizers.config_generators.bohb import BOHB

PATIENCE = 20


class Bohb(Algorithm):
    """hpbandster 0.7 (no longer maintained; Optuna's TPE with ASHA is the kept alternative).

    Attributes:
        min_points_in_model: trials at one budget before its model is used; the number of parameters + 1 if
            left out, which is also the least allowed.
        top_n_percent: the share of trials that counts as good.
        num_samples: candidates compared per suggestion.
        random_fraction: the share of suggestions drawn at random.
        bandwidth_factor, min_bandwidth: of the proposals around good trials, in shares of a parameter's range. With
            few trials at one budget the published 0.001 lets the model collapse onto the first good ones; 0.1 does
            not (docs/algorithms.md).
    """

    name: Literal["bohb"] = "bohb"
    min_points_in_model: int | None = Field(default=None, ge=2, le=1_000_000)
    top_n_percent: int = Field(default=15, ge=1, le=99)
    num_samples: Candidates = 64
    random_fraction: float = Field(default=1 / 3, ge=0, le=1)
    bandwidth_factor: float = Field(default=3.0, gt=0)
    min_bandwidth: float = Field(default=1e-3, gt=0)

    title: ClassVar[str] = "kernel densities per budget, for HyperBand-like schedulers"
    paper: ClassVar[str] = "Falkner, Klein & Hutter 2018 (ICML), arXiv 1807.01774"
    requires: ClassVar[dict[str, str]] = {
        "hpbandster": "hpbandster",
        "ConfigSpace": "ConfigSpace",
        "statsmodels": "statsmodels",
    }
    limits: ClassVar[str] = (
        "hpbandster 0.7.4 asks for netifaces, which has no wheel for Python 3.11 and needs a C compiler; BOHB's model "
        "does not load it, so without a compiler: pip install ConfigSpace statsmodels Pyro4 serpent, then "
        "pip install --no-deps hpbandster"
    )
    startup_option: ClassVar[str] = "min_points_in_model"

    def startup(self, space: SearchSpace, n_trials: int) -> int:
        """Those of the branch that needs fewest: as many good ones as a model takes, and one more bad one than it has
        parameters."""
        found = []
        for branch in space.branches:
            varying = sum(not space.labelled[label].single for label in branch.labels)
            if varying:
                found.append(max(self.min_points_in_model or 0, varying + 1) + varying + 1)
        return min(found, default=0)

    def _proposer(self, space: SearchSpace, mode: Mode, seed: int, n_trials: int | None) -> Proposer:
        return _Densities(self, space, mode, seed)


class _BohbBranch(NamedTuple):
    when: When
    members: list[tuple[str, Parameter]]
    generator: BOHB | None  # None where nothing varies


class _Densities:
    def __init__(self, spec: Bohb, space: SearchSpace, mode: Mode, seed: int) -> None:
        import numpy as np

        self._space = space
        self._mode: Mode = mode
        first, second, third = np.random.SeedSequence(seed).generate_state(3).tolist()
        self._rng = np.random.default_rng(first)
        self._state = OwnedState(second)
        self._branches = list(_make_branches(spec, space, third))
        self._running: dict[int, tuple[Point, set[float]]] = {}
        self._remembered: list[tuple[Point, float]] = []

    def propose(self, number: int) -> Configuration:
        for _ in range(PATIENCE):
            with self._state.lent(), _quiet():
                config = self._draw()
            if self._space.allows(config):
                break
        else:
            config = self._space.sample(self._rng)
        self.adopt(number, config)
        return config

    def _draw(self) -> Configuration:
        config: Configuration = {}
        for when, members, generator in self._branches:
            if not holds(when, config):
                continue
            drawn = {} if generator is None else generator.get_config(None)[0]
            for label, parameter in members:
                if label not in drawn:
                    config[parameter.name] = parameter.at(0.0)
                elif isinstance(parameter, Choice):
                    config[parameter.name] = parameter.value(int(drawn[label]))
                else:
                    config[parameter.name] = parameter.at(float(drawn[label]))
        return {p.name: config[p.name] for p in self._space.parameters if p.name in config}

    def adopt(self, number: int, config: Point) -> None:
        self._running[number] = (dict(config), set())

    def progress(self, number: int, outcome: Outcome, result: Result) -> None:
        """A running trial has spent the budget of a rung (only HyperBand for BOHB says so)."""
        budget = (result.get("hyperband_info") or {}).get("budget")
        if budget is not None:
            self._tell(number, float(budget), outcome.value)

    def learn(self, number: int, outcome: Outcome) -> None:
        if self._remembered and outcome.state == "complete":
            # What an earlier study found counts as evaluated with the budget that a whole trial has here.
            for config, value in self._remembered:
                self._result(config, float(outcome.step), loss_of(value, self._mode))
            self._remembered.clear()
        self._tell(number, float(outcome.step), outcome.value)
        del self._running[number]

    def remember(self, config: Point, value: float) -> None:
        self._remembered.append((dict(config), value))

    def _tell(self, number: int, budget: float, value: float | None) -> None:
        config, budgets = self._running[number]
        if budget not in budgets:
            budgets.add(budget)
            self._result(config, budget, math.inf if value is None else loss_of(value, self._mode))

    def _result(self, config: Point, budget: float, loss: float) -> None:
        existing = self._space.existing(config)
        for _, members, generator in self._branches:
            if generator is None or members[0][0] not in existing:
                continue
            units = {
                label: parameter.index(config[parameter.name])
                if isinstance(parameter, Choice)
                else parameter.position(config[parameter.name])
                for label, parameter in members
                if not parameter.single
            }
            job = SimpleNamespace(result={"loss": loss}, kwargs={"budget": budget, "config": units}, exception=None)
            with self._state.lent(), _quiet():
                generator.new_result(job)


def _make_branches(spec: Bohb, space: SearchSpace, seed: int) -> Iterator[_BohbBranch]:
    import ConfigSpace
    from hpbandster.optimizers.config_generators.bohb import BOHB

    options = spec.model_dump(exclude={"name"})
    for number, branch in enumerate(space.branches):
        members = [(label, space.labelled[label]) for label in branch.labels]
        varying = [(label, parameter) for label, parameter in members if not parameter.single]
        generator = None
        if varying:
            inner = ConfigSpace.ConfigurationSpace(seed=(seed + number) % 2**32)
            for label, parameter in varying:
                inner.add(
                    ConfigSpace.CategoricalHyperparameter(label, list(range(parameter.size)))
                    if isinstance(parameter, Choice)
                    else ConfigSpace.UniformFloatHyperparameter(label, 0.0, 1.0)
                )
            least = options["min_points_in_model"]
            points = None if least is None else max(least, len(varying) + 1)
            with _quiet():
                generator = BOHB(inner, **{**options, "min_points_in_model": points})
        yield _BohbBranch(dict(branch.when), members, generator)


@contextmanager
def _quiet() -> Iterator[None]:
    """hpbandster calls what ConfigSpace deprecates, divides by zero where good trials are all alike, and logs it."""
    logger = logging.getLogger("hpbandster")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
