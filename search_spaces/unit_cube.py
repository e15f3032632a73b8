"""Other libraries' searchers as proposers, each in the unit cube of the parameters that vary.

A coordinate runs evenly along its parameter's own scale, so logarithms, steps and whole numbers are the
same for every library, and nothing but a position can come back.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from search_spaces.direction import Mode
from search_spaces.parameters import Choice, Parameter
from search_spaces.proposer import Outcome
from search_spaces.random_state import OwnedState
from search_spaces.space import SearchSpace
from search_spaces.values import Configuration, Point

if TYPE_CHECKING:
    from ray.tune.search import Searcher
    from ray.tune.search.sample import Domain

METRIC = "objective"
# Wrappers answer None for "not now" (a repetition, a converged local search); ask again before chance
# decides.
PATIENCE = 20

# Key -> place along the parameter's scale, or a choice's index as text.
Place = dict[str, float | str]
Domains: TypeAlias = "dict[str, Domain]"


class Library(Protocol):
    """What the table says of a library."""

    uses_torch: ClassVar[bool]
    has_choices: ClassVar[bool]

    def domains(self, space: SearchSpace) -> Domains:
        """Return key -> Ray Tune domain, one for each parameter that varies."""

    def make(self, domains: Domains, mode: Mode, seed: int, n_trials: int) -> Searcher:
        """Return the library's searcher."""

    def tell(self, searcher: Searcher, trial: str, point: Place, value: float) -> bool:
        """Tell the value of a point that the searcher did not propose; False where that has to wait."""

    def unlock(self, searcher: Searcher) -> None:
        """Called when the searcher answers "not now"."""

    def enter(self, searcher: Searcher) -> None:
        """Called before the searcher is used: restore what the library keeps per process."""


def varying(space: SearchSpace) -> dict[str, Parameter]:
    """Neutral key -> parameter that varies: libraries disagree on what a name may hold."""
    found = [parameter for parameter in space.labelled.values() if not parameter.single]
    return {f"p{index}": parameter for index, parameter in enumerate(found)}


class Adapter:
    """A library's searcher as a proposer; made at the first proposal, when the given points are known."""

    def __init__(self, spec: Library, space: SearchSpace, mode: Mode, seed: int, n_trials: int) -> None:
        import numpy as np

        own, state, self._seed = np.random.SeedSequence(seed).generate_state(3).tolist()
        self._spec = spec
        self._space = space
        self._mode: Mode = mode
        self._n_trials = n_trials
        self._rng = np.random.default_rng(own)
        self._state = OwnedState(state, torch=spec.uses_torch)
        self._searcher: Searcher = None
        self._untold: list[tuple[Place, float]] = []  # points that the library did not propose, and has not heard of
        self._proposed: dict[int, tuple[str, Place]] = {}
        self._given: dict[int, Place] = {}
        self._asked = 0
        self._worst: float | None = None
        self._owed: list[tuple[str | None, Place]] = []

    def propose(self, number: int) -> Configuration:
        with self._state.lent(), _quiet():
            if self._searcher is None:
                domains = self._spec.domains(self._space)
                self._searcher = self._spec.make(domains, self._mode, self._seed % 2**31, self._n_trials)
            self._spec.enter(self._searcher)
            self._hand_over()
            for _ in range(PATIENCE):
                point = self._suggest()
                if point is None:
                    continue
                config = self._decode(point)
                if self._space.allows(config):
                    self._proposed[number] = (self._id(self._asked), point)
                    return config
                self._tell(self._id(self._asked), point, None)
        config = self._space.sample(self._rng)
        self.adopt(number, config)
        return config

    def adopt(self, number: int, config: Point) -> None:
        self._proposed.pop(number, None)
        self._given[number] = self._encode(config)

    def learn(self, number: int, outcome: Outcome) -> None:
        with self._state.lent(), _quiet():
            if self._searcher is not None:
                self._spec.enter(self._searcher)
            if number in self._proposed:
                trial, point = self._proposed.pop(number)
                self._tell(trial, point, outcome.value)
            else:
                self._tell(None, self._given.pop(number), outcome.value)

    def remember(self, config: Point, value: float) -> None:
        with self._state.lent(), _quiet():
            self._tell(None, self._encode(config), value)

    def _id(self, asked: int) -> str:
        return f"t{asked}"

    def _suggest(self) -> Place | None:
        self._asked += 1
        point = self._searcher.suggest(self._id(self._asked))
        if point is None:
            self._spec.unlock(self._searcher)
        return dict(point) if isinstance(point, dict) else None

    def _tell(self, trial: str | None, point: Place, value: float | None) -> None:
        """A trial's value; one that failed counts as the worst so far, as soon as there is one."""
        if value is None:
            self._owed.append((trial, point))
            if self._worst is None:
                return
        else:
            worse = min if self._mode == "max" else max
            self._worst = value if self._worst is None else worse(self._worst, value)
            self._tell_value(trial, point, value)
        for owed_trial, owed_point in self._owed:
            self._tell_value(owed_trial, owed_point, self._worst)
        self._owed.clear()

    def _tell_value(self, trial: str | None, point: Place, value: float | None) -> None:
        assert value is not None
        if trial is not None:
            self._searcher.on_trial_complete(trial, as_result(point, value))
        else:
            self._untold.append((point, value))
        self._hand_over()

    def _hand_over(self) -> None:
        """Tell the library, in their order, of points that it did not propose, as far as it can hear of them now."""
        while self._searcher is not None and self._untold:
            self._asked += 1
            if not self._spec.tell(self._searcher, self._id(self._asked), *self._untold[0]):
                return
            del self._untold[0]

    def _encode(self, config: Point) -> Place:
        existing = {id(parameter) for parameter in self._space.existing(config).values()}
        point: Place = {}
        for key, parameter in varying(self._space).items():
            value: Any = config[parameter.name] if id(parameter) in existing else parameter.default
            if isinstance(parameter, Choice) and self._spec.has_choices:
                point[key] = str(parameter.index(value))
            else:
                point[key] = parameter.position(value)
        return point

    def _decode(self, point: Place) -> Configuration:
        keys = {id(parameter): key for key, parameter in varying(self._space).items()}
        units: list[float] = []
        for parameter in self._space.parameters:
            key = keys.get(id(parameter))
            if key is None:
                units.append(0.0)
            elif isinstance(parameter, Choice) and self._spec.has_choices:
                units.append((int(point[key]) + 0.5) / parameter.size)
            else:
                units.append(min(max(float(point[key]), 0.0), 1.0))
        return self._space.at(units)


def as_result(point: Place, value: float) -> dict[str, object]:
    """Return what a wrapper wants to see; one unit of cost for every trial, so that no clock decides anything."""
    return {METRIC: value, "training_iteration": 1, "time_total_s": 1.0, "config": dict(point)}


@contextmanager
def _quiet() -> Iterator[None]:
    """The libraries warn about each other, and log every suggestion."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
