"""HyperOpt's tree-structured Parzen estimator (Bergstra et al. 2011, 2013).

Driven through `hyperopt.tpe.suggest` rather than Ray's `HyperOptSearch`, because that wrapper refuses two
branches with a parameter of the same name, stores NaN as a good loss and turns lists into tuples.
HyperOpt's estimator is one-dimensional and looks, for each parameter, at the trials that had it; so the
branches of a conditional space need no nesting: each is its own HyperOpt domain, asked one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from search_spaces.algorithms.base import Algorithm, Candidates, Trials
from search_spaces.conditions import holds
from search_spaces.direction import Mode, loss_of
from search_spaces.parameters import Choice, Constant, Parameter
from search_spaces.proposer import Outcome, Proposer
from search_spaces.space import SearchSpace
from search_spaces.values import Configuration, PlainValue, Point, When

if TYPE_CHECKING:
    from hyperopt.base import Domain
    from hyperopt.pyll import Apply

PATIENCE = 20


class HyperOpt(Algorithm):
    """HyperOpt 0.3.

    Attributes:
        n_startup_trials: trials drawn at random before the model is used.
        n_ei_candidates: candidates compared per parameter and suggestion.
        gamma: the share of good trials is gamma * sqrt(trials).
        prior_weight: how much the uniform prior counts against a trial.
    """

    name: Literal["hyperopt"] = "hyperopt"
    n_startup_trials: Trials = 20
    n_ei_candidates: Candidates = 24
    gamma: float = Field(default=0.25, gt=0, le=1)
    prior_weight: float = Field(default=1.0, gt=0)

    title: ClassVar[str] = "tree-structured Parzen estimator, one parameter at a time"
    paper: ClassVar[str] = "Bergstra et al. 2011 (NeurIPS), 2013 (ICML)"
    requires: ClassVar[dict[str, str]] = {"hyperopt": "hyperopt"}
    startup_option: ClassVar[str] = "n_startup_trials"

    def startup(self, space: SearchSpace, n_trials: int) -> int:
        return self.n_startup_trials

    def _proposer(self, space: SearchSpace, mode: Mode, seed: int, n_trials: int | None) -> Proposer:
        return _Domains(self, space, mode, seed)


class _HyperOptBranch(NamedTuple):
    when: When
    members: list[tuple[str, Parameter]]
    domain: Domain | None  # None where nothing varies


@lru_cache(maxsize=64)
def _branches(space: SearchSpace) -> list[_HyperOptBranch]:
    """Return a HyperOpt domain per branch; building one takes longer than a suggestion, so equal spaces share them."""
    from hyperopt.base import Domain

    found = []
    for branch in space.branches:
        members = [(label, space.labelled[label]) for label in branch.labels]
        nodes = {label: _node(label, parameter) for label, parameter in members if not parameter.single}
        found.append(_HyperOptBranch(dict(branch.when), members, Domain(None, nodes) if nodes else None))
    return found


def _node(label: str, parameter: Parameter) -> Apply:
    from hyperopt import hp

    assert not isinstance(parameter, Constant)
    if isinstance(parameter, Choice):
        return hp.randint(label, parameter.size)
    if parameter.log and parameter.kind == "int" and parameter.step is None:
        return hp.qloguniform(label, math.log(parameter.low - 0.5), math.log(parameter.high + 0.5), 1)
    if parameter.log:
        return hp.loguniform(label, math.log(parameter.low), math.log(parameter.high))
    if parameter.size is not None:
        return hp.quniform(label, -0.5, parameter.size - 0.5, 1)
    return hp.uniform(label, parameter.low, parameter.high)


def _to_hyperopt(parameter: Parameter, value: Any) -> float:
    assert not isinstance(parameter, Constant)
    by_index = isinstance(parameter, Choice) or (parameter.size is not None and not parameter.log)
    return parameter.index(value) if by_index else float(value)


def _from_hyperopt(parameter: Parameter, value: float) -> PlainValue:
    assert not isinstance(parameter, Constant)
    if isinstance(parameter, Choice):
        return parameter.value(int(value))
    if parameter.size is not None:
        if parameter.log:
            return parameter.nearest(float(value))
        return parameter.value(min(max(round(float(value)), 0), parameter.size - 1))
    return min(max(float(value), parameter.low), parameter.high)


class _Absent(dict[str, list[float]]):
    """HyperOpt's mark for a parameter that a trial did not have: an empty list."""

    def __missing__(self, label: str) -> list[float]:
        return []


# A trial as HyperOpt keeps it: nested dictionaries.
_Row = dict[str, Any]


class _History:
    """The part of HyperOpt's `Trials` that its estimator reads."""

    def __init__(self) -> None:
        self.trials: list[_Row] = []

    def __len__(self) -> int:
        return len(self.trials)

    def new_trial_docs(self, tids: object, specs: object, results: object, miscs: list[_Row]) -> list[_Row]:
        return miscs


class _Domains:
    def __init__(self, spec: HyperOpt, space: SearchSpace, mode: Mode, seed: int) -> None:
        import numpy as np

        self._spec = spec
        self._space = space
        self._mode: Mode = mode
        self._rng = np.random.default_rng(seed)
        self._history = _History()
        self._running: dict[int, _Row] = {}

    def propose(self, number: int) -> Configuration:
        if len(self._history) >= self._spec.n_startup_trials:
            for _ in range(PATIENCE):
                config = self._draw()
                if self._space.allows(config):
                    self.adopt(number, config)
                    return config
                self._add(config, math.inf)
        config = self._space.sample(self._rng)
        self.adopt(number, config)
        return config

    def _draw(self) -> Configuration:
        from hyperopt import tpe

        config: Configuration = {}
        for when, members, domain in _branches(self._space):
            if not holds(when, config):
                continue
            drawn: Mapping[str, Sequence[float]] = {}
            if domain is not None:
                (misc,) = tpe.suggest(
                    [len(self._history)],
                    domain,
                    self._history,
                    int(self._rng.integers(2**31)),
                    prior_weight=self._spec.prior_weight,
                    n_startup_jobs=0,
                    n_EI_candidates=self._spec.n_ei_candidates,
                    gamma=self._spec.gamma,
                    verbose=False,
                )
                drawn = misc["vals"]
            for label, parameter in members:
                if label in drawn:
                    config[parameter.name] = _from_hyperopt(parameter, drawn[label][0])
                else:
                    config[parameter.name] = parameter.at(0.0)
        return {p.name: config[p.name] for p in self._space.parameters if p.name in config}

    def adopt(self, number: int, config: Point) -> None:
        self._running[number] = self._add(config, None)

    def learn(self, number: int, outcome: Outcome) -> None:
        loss = math.inf if outcome.value is None else loss_of(outcome.value, self._mode)
        self._running.pop(number)["result"]["loss"] = loss

    def remember(self, config: Point, value: float) -> None:
        self._add(config, loss_of(value, self._mode))

    def _add(self, config: Point, loss: float | None) -> _Row:
        """One more row of the history; without a loss the trial is running, and counts as a bad one until it ends."""
        tid = len(self._history)
        existing = self._space.existing(config).items()
        values = {label: [_to_hyperopt(p, config[p.name])] for label, p in existing if not p.single}
        misc = {"tid": tid, "idxs": _Absent({label: [tid] for label in values}), "vals": _Absent(values)}
        row = {"tid": tid, "misc": misc, "result": {"loss": loss}}
        self._history.trials.append(row)
        return row
