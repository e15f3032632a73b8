"""Optuna's samplers: TPE (version-5 defaults, or as version 4 had them), Gaussian process, CMA-ES.

Driven through Optuna's own study and sampler classes rather than Ray's `OptunaSearch`, because that wrapper
hands nested choices through unresolved, leaves a trial with a NaN result RUNNING forever, refuses or drops
steps on a log scale, stores every intermediate result, and tells a trial the scheduler stopped as if it had
finished.

Conditional spaces: Optuna's `group=True` finds the branches again from all past trials at every suggestion
and samples every branch, also those that will not exist. Our space knows its branches, so TPE samples the
joint distribution of one existing branch after the other, which is the same model at a fraction of the
time. The Gaussian process and CMA-ES need one fixed set of parameters: they see all branches at once, and
`losses` says so.
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from search_spaces.algorithms.base import Algorithm, Candidates, Trials
from search_spaces.conditions import holds
from search_spaces.direction import Mode
from search_spaces.errors import SpaceError
from search_spaces.optuna_distributions import distributions, from_optuna, to_optuna
from search_spaces.proposer import Outcome, Proposer
from search_spaces.space import SearchSpace
from search_spaces.values import Configuration, Point

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.study import Study

# How often a proposal that breaks a constraint is put back, as an infeasible trial, before chance decides.
PATIENCE = 20


class Optuna(Algorithm):
    """Optuna 5.

    Attributes:
        sampler: "tpe", "gp" (needs torch) or "cmaes" (needs cmaes).
        profile: for TPE, "v5" models parameters jointly and avoids running trials; "v4" has the defaults of
            Optuna 4, one parameter at a time.
        n_startup_trials: trials drawn at random before the model is used.
        n_ei_candidates: for TPE, candidates compared per suggestion.
        multivariate, constant_liar, group: for TPE, override the profile (`group`: model the parameters of a
            branch jointly; on for conditional spaces).
    """

    name: Literal["optuna"] = "optuna"
    sampler: Literal["tpe", "gp", "cmaes"] = "tpe"
    profile: Literal["v5", "v4"] = "v5"
    n_startup_trials: Trials = 10
    n_ei_candidates: Candidates = 24
    multivariate: bool | None = None
    constant_liar: bool | None = None
    group: bool | None = None

    title: ClassVar[str] = "tree-structured Parzen estimator; Gaussian process and CMA-ES as options"
    paper: ClassVar[str] = "Akiba et al. 2019, arXiv 1907.10902; Watanabe 2023, arXiv 2304.11127"
    requires: ClassVar[dict[str, str]] = {"optuna": "optuna"}
    startup_option: ClassVar[str] = "n_startup_trials"

    def startup(self, space: SearchSpace, n_trials: int) -> int:
        return self.n_startup_trials

    @property
    def full_trials_only(self) -> bool:
        return self.sampler == "gp"

    def _check_installed(self) -> None:
        super()._check_installed()
        package = {"gp": "torch", "cmaes": "cmaes"}.get(self.sampler)
        if package is not None and importlib.util.find_spec(package) is None:
            raise SpaceError(
                f"optuna's sampler {self.sampler!r} needs {package}, which is not installed; "
                f"pip install {package}, or use sampler: tpe",
                path="sampler",
            )

    def _proposer(self, space: SearchSpace, mode: Mode, seed: int, n_trials: int | None) -> Proposer:
        if self.sampler == "tpe":
            return _BranchByBranch(self, space, mode, seed)
        return _AllBranches(self, space, mode, seed)


class _Study(ABC):
    """An Optuna study in memory: trials go in and out of it, the subclasses decide how one is drawn.

    It is made when its sampler is first asked for a configuration, and told then what has happened so far, in order. A
    search that ends before, as one of a few trials does, never pays for it.
    """

    def __init__(self, spec: Optuna, space: SearchSpace, mode: Mode, seed: int) -> None:
        import numpy as np

        own, library = np.random.SeedSequence(seed).spawn(2)
        self._rng = np.random.default_rng(own)
        self._spec, self._space, self._mode, self._library = spec, space, mode, library
        self._startup = spec.n_startup_trials
        self._earlier: list[tuple[Callable[..., None], tuple[Any, ...]]] | None = []
        self._ids: dict[int, int] = {}
        self._n_told = 0

    @property
    def study(self) -> Study:
        """Optuna's study, which has heard of everything."""
        earlier, self._earlier = self._earlier, None
        if earlier is not None:
            self._begin()
            for event, about in earlier:
                event(*about)
        return self._study

    def _begin(self) -> None:
        """Make Optuna's study."""
        from optuna.pruners import NopPruner
        from optuna.storages import InMemoryStorage
        from optuna.study import Study, StudyDirection

        self._sampler = self._make_sampler(self._spec, int(self._library.generate_state(1)[0]))
        self._storage = InMemoryStorage()
        direction = StudyDirection.MAXIMIZE if self._mode == "max" else StudyDirection.MINIMIZE
        with _quiet("optuna"):
            self._study_id = self._storage.create_new_study([direction], "study")
        self._study = Study("study", self._storage, self._sampler, NopPruner())
        self._distributions = distributions(self._space)

    def _tell(self, event: Callable[..., None], *about: Any) -> None:
        """Something happens to the study, or will have when it is made."""
        if self._earlier is None:
            event(*about)
        else:
            self._earlier.append((event, about))

    @abstractmethod
    def _make_sampler(self, spec: Optuna, seed: int) -> BaseSampler:
        """Optuna's sampler, with its own random state."""

    @abstractmethod
    def _draw(self, trial_id: int) -> Configuration:
        """Return a configuration of the space, drawn for a trial and stored in it."""

    @abstractmethod
    def _heeds(self, state: str) -> bool:
        """Return whether the sampler takes trials that ended in this way into account."""

    def _ask(self) -> int:
        trial = self.study.ask()
        return self._storage.get_trial_id_from_study_id_trial_number(self._study_id, trial.number)

    def _store(self, trial_id: int, label: str, value: Any) -> None:
        internal = to_optuna(self._space.labelled[label], value)
        self._storage.set_trial_param(trial_id, label, internal, self._distributions[label])

    def _store_all(self, trial_id: int, config: Point) -> None:
        for label, parameter in self._space.existing(config).items():
            if label in self._distributions:
                self._store(trial_id, label, config[parameter.name])

    def propose(self, number: int) -> Configuration:
        if self._n_told >= self._startup:
            _ = self.study
            for _ in range(PATIENCE):
                trial_id = self._ask()
                config = self._draw(trial_id)
                if self._space.allows(config):
                    self._ids[number] = trial_id
                    return config
                self._refuse(trial_id)
        config = self._space.sample(self._rng)
        self.adopt(number, config)
        return config

    def adopt(self, number: int, config: Point) -> None:
        self._tell(self._enter, number, dict(config))

    def learn(self, number: int, outcome: Outcome) -> None:
        self._tell(self._leave, number, outcome)
        self._n_told += self._heeds(outcome.state)

    def remember(self, config: Point, value: float) -> None:
        self._tell(self._know, dict(config), value)
        self._n_told += 1

    def _enter(self, number: int, config: Configuration) -> None:
        self._ids[number] = self._ask()
        self._store_all(self._ids[number], config)

    def _leave(self, number: int, outcome: Outcome) -> None:
        self._end(self._ids.pop(number), outcome.state, outcome.value, outcome.step)

    def _know(self, config: Configuration, value: float) -> None:
        trial_id = self._ask()
        self._store_all(trial_id, config)
        self._end(trial_id, "complete", value, 0)

    def _refuse(self, trial_id: int) -> None:
        """A constraint of the space does not allow what was drawn; another draw follows."""
        self._end(trial_id, "failed", None, 0)

    def _end(self, trial_id: int, state: str, value: float | None, step: int) -> None:
        # What Study.tell does, without the deep copy of the trial it returns (a third of its time).
        from optuna.trial import TrialState

        values = None if value is None else [value]
        if state == "complete":
            ended = TrialState.COMPLETE
        elif self._heeds(state):
            # Pruned trials rank after complete ones, by how far they came and then by value; those without a
            # value (failed, not allowed) come last, so that a region that always fails is avoided.
            ended = TrialState.PRUNED
            if value is not None:
                self._storage.set_trial_intermediate_value(trial_id, step, value)
        else:
            ended, values = TrialState.FAIL, None
        self._sampler.after_trial(self.study, self._storage.get_trial(trial_id), ended, values)
        self._storage.set_trial_state_values(trial_id, ended, values)


class _BranchByBranch(_Study):
    """TPE over one existing branch after the other."""

    def _begin(self) -> None:
        super()._begin()
        spec, space = self._spec, self._space
        joint = spec.multivariate if spec.multivariate is not None else spec.profile == "v5"
        group = spec.group if spec.group is not None else True
        self._plan = [
            (
                dict(branch.when),
                [(label, space.labelled[label], self._distributions.get(label)) for label in branch.labels],
                {label: self._distributions[label] for label in branch.labels if label in self._distributions}
                if joint and (group or not branch.when)
                else {},
            )
            for branch in space.branches
        ]

    def _make_sampler(self, spec: Optuna, seed: int) -> BaseSampler:
        from optuna.samplers import TPESampler

        v5 = spec.profile == "v5"
        return TPESampler(
            seed=seed,
            n_startup_trials=spec.n_startup_trials,
            n_ei_candidates=spec.n_ei_candidates,
            multivariate=v5 if spec.multivariate is None else spec.multivariate,
            constant_liar=v5 if spec.constant_liar is None else spec.constant_liar,
        )

    def _heeds(self, state: str) -> bool:
        return True

    def _refuse(self, trial_id: int) -> None:
        from optuna.trial import Trial

        Trial(self.study, trial_id).set_constraint("space", 1.0)  # TPE ranks it below everything allowed
        super()._refuse(trial_id)

    def _draw(self, trial_id: int) -> Configuration:
        frozen = self._storage.get_trial(trial_id)
        config: Configuration = {}
        for when, members, joint in self._plan:
            if not holds(when, config):
                continue
            drawn = self._sampler.sample_relative(self.study, frozen, joint) if joint else {}
            for label, parameter, distribution in members:
                if distribution is None:
                    config[parameter.name] = parameter.at(0.0)
                    continue
                if label in drawn:
                    value = drawn[label]
                else:
                    value = self._sampler.sample_independent(self.study, frozen, label, distribution)
                config[parameter.name] = value = from_optuna(parameter, distribution, value)
                self._store(trial_id, label, value)
        return {p.name: config[p.name] for p in self._space.parameters if p.name in config}


class _AllBranches(_Study):
    """Samplers that need every parameter in every trial; what does not exist is left out of the configuration."""

    def _begin(self) -> None:
        from optuna.distributions import CategoricalDistribution

        super()._begin()
        # As the sampler itself finds out, but from full trials only, of which there may be none.
        unknown = CategoricalDistribution if self._spec.sampler == "cmaes" else ()
        self._joint = {label: each for label, each in self._distributions.items() if not isinstance(each, unknown)}

    def _make_sampler(self, spec: Optuna, seed: int) -> BaseSampler:
        from optuna.samplers import CmaEsSampler, GPSampler, RandomSampler

        options = {"seed": seed, "independent_sampler": RandomSampler(seed=seed)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "experimental"
            if spec.sampler == "gp":
                return GPSampler(n_startup_trials=spec.n_startup_trials, **options)
            return CmaEsSampler(
                n_startup_trials=spec.n_startup_trials,
                consider_pruned_trials=True,
                warn_independent_sampling=False,
                **options,
            )

    def _heeds(self, state: str) -> bool:
        return state == "complete" or (state == "stopped" and not self._spec.full_trials_only)

    def _store_all(self, trial_id: int, config: Point) -> None:
        existing = self._space.existing(config)
        for label in self._distributions:
            parameter = self._space.labelled[label]
            self._store(trial_id, label, config[parameter.name] if label in existing else parameter.default)

    def _draw(self, trial_id: int) -> Configuration:
        frozen = self._storage.get_trial(trial_id)
        drawn = self._sampler.sample_relative(self.study, frozen, self._joint)
        config: Configuration = {}
        for label, parameter in self._space.labelled.items():
            distribution = self._distributions.get(label)
            if distribution is None:
                value = parameter.at(0.0)
            else:
                if label in drawn:
                    value = drawn[label]
                else:
                    value = self._sampler.sample_independent(self.study, frozen, label, distribution)
                value = from_optuna(parameter, distribution, value)
                self._store(trial_id, label, value)
            if holds(parameter.when, config):
                config[parameter.name] = value
        return config


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Silences a logger's information for a moment ("A new study created", once per customer)."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
