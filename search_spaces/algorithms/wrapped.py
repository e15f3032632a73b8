"""Algorithms of other libraries through Ray Tune's own wrappers (and FLAML's), as optional extras: one table.

All of them see the unit cube: a real number per parameter that varies, evenly in its own scale, and a
choice where the library has choices. So logarithms, steps and whole numbers are the same for all, and
nothing but a position can come back. The branches of a conditional space are all seen in every trial; what
does not exist is left out of the configuration, and `losses` says so.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from search_spaces.algorithms.base import Algorithm, Trials
from search_spaces.algorithms.random import RandomDraws
from search_spaces.direction import Mode, loss_of, worth_of
from search_spaces.errors import SpaceError
from search_spaces.parameters import Choice, Float, Int
from search_spaces.proposer import Proposer, Result
from search_spaces.space import SearchSpace
from search_spaces.unit_cube import METRIC, Adapter, Domains, Place, as_result, varying
from search_spaces.values import Configuration

if TYPE_CHECKING:
    from ray.tune.search import Searcher
    from ray.tune.search.ax import AxSearch
    from ray.tune.search.bayesopt import BayesOptSearch
    from ray.tune.search.hebo import HEBOSearch
    from ray.tune.search.nevergrad import NevergradSearch
    from ray.tune.search.zoopt import ZOOptSearch


class _Wrapped(Algorithm):
    """One row of the table: how the library's searcher is made, and what it can be told."""

    uses_torch: ClassVar[bool] = False
    has_choices: ClassVar[bool] = True

    def domains(self, space: SearchSpace) -> Domains:
        """Return key -> Ray Tune domain, one for each parameter that varies."""
        from ray import tune

        return {
            key: tune.choice([str(index) for index in range(parameter.size)])
            if isinstance(parameter, Choice) and self.has_choices
            else tune.uniform(0.0, 1.0)
            for key, parameter in varying(space).items()
        }

    @abstractmethod
    def make(self, domains: Domains, mode: Mode, seed: int, n_trials: int) -> Searcher:
        """Return the library's searcher."""

    def feed(self, searcher: Searcher, point: Place) -> None:
        """Make `searcher.suggest` answer this point next, where `tell` needs that."""

    def tell(self, searcher: Searcher, trial: str, point: Place, value: float) -> bool:
        """Tell the value of a point that the searcher did not propose; False where that has to wait."""
        self.feed(searcher, point)
        if searcher.suggest(trial) is None:
            return False
        searcher.on_trial_complete(trial, as_result(point, value))
        return True

    def unlock(self, searcher: Searcher) -> None:
        """Called when the searcher answers "not now"."""

    def enter(self, searcher: Searcher) -> None:
        """Called before the searcher is used: restore what the library keeps per process."""

    def _proposer(self, space: SearchSpace, mode: Mode, seed: int, n_trials: int | None) -> Proposer:
        if not varying(space):  # nothing to search, and the libraries refuse a cube without dimensions
            return RandomDraws(space, seed)
        return Adapter(self, space, mode, seed, n_trials or 100)


class Ax(_Wrapped):
    """Ax: Sobol points, then a Gaussian process (BoTorch)."""

    name: Literal["ax"] = "ax"

    title: ClassVar[str] = "Gaussian process (BoTorch) through Ray's AxSearch"
    paper: ClassVar[str] = "Balandat et al. 2020, arXiv 1910.06403"
    requires: ClassVar[dict[str, str]] = {"ax": "ax-platform==1.2.4"}
    uses_torch: ClassVar[bool] = True
    breaks_from: ClassVar[dict[str, str]] = {"ax-platform": "1.3"}
    limits: ClassVar[str] = (
        "ax-platform 1.2.4 works; 1.3.0 took Objective.metric away, which Ray 2.60's wrapper reads when it creates "
        "the experiment (seen with 1.3.1: AttributeError: 'Objective' object has no attribute 'objectives')"
    )

    def startup(self, space: SearchSpace, n_trials: int) -> int:
        return max(5, 2 * len(varying(space)))

    def make(self, domains: Domains, mode: Mode, seed: int, n_trials: int) -> AxSearch:
        from ray.tune.search.ax import AxSearch

        searcher = AxSearch(random_seed=seed, verbose_logging=False)
        searcher.set_search_properties(METRIC, mode, domains)
        return searcher

    def feed(self, searcher: AxSearch, point: Place) -> None:
        searcher._points_to_evaluate = [point]


@cache
def _bayesopt_search() -> type[BayesOptSearch]:
    from ray.tune.search.bayesopt import BayesOptSearch

    class Search(BayesOptSearch):
        """The library refuses to hear of a point twice; here what is told last counts."""

        def _register_result(self, params: Place, result: Result) -> None:
            space = self.optimizer.space
            place = space.params_to_array(params)
            if place in space:
                space.target[(space.params == place).all(axis=1)] = worth_of(result[METRIC], self.mode)
            else:
                super()._register_result(params, result)

    return Search


class BayesOpt(_Wrapped):
    """The package bayesian-optimization: a Gaussian process (scikit-learn) with an upper confidence bound.

    Attributes:
        random_search_steps: trials drawn at random before the model is used.
        kappa: how much uncertainty is worth.
    """

    name: Literal["bayesopt"] = "bayesopt"
    random_search_steps: Trials = 10
    kappa: float = Field(default=2.576, ge=0)

    title: ClassVar[str] = "Gaussian process (scikit-learn) through Ray's BayesOptSearch"
    paper: ClassVar[str] = "Nogueira 2014, bayesian-optimization"
    requires: ClassVar[dict[str, str]] = {"bayes_opt": "bayesian-optimization~=1.4.0"}
    has_choices: ClassVar[bool] = False
    startup_option: ClassVar[str] = "random_search_steps"
    breaks_from: ClassVar[dict[str, str]] = {"bayesian-optimization": "2"}
    limits: ClassVar[str] = (
        "bayesian-optimization 1.4.0 (the one version that nevergrad 1.0.12 goes with) and 1.4.3 work; 2.0 took "
        "UtilityFunction away, which Ray 2.60's wrapper calls when it is made (seen with 3.4.0: AttributeError: module "
        "'bayes_opt' has no attribute 'UtilityFunction')"
    )

    def startup(self, space: SearchSpace, n_trials: int) -> int:
        return self.random_search_steps

    def make(self, domains: Domains, mode: Mode, seed: int, n_trials: int) -> BayesOptSearch:
        searcher = _bayesopt_search()(
            mode=mode,
            metric=METRIC,
            random_state=seed,
            random_search_steps=self.random_search_steps,
            utility_kwargs={"kind": "ucb", "kappa": self.kappa, "xi": 0.0},
            skip_duplicate=False,
            patience=1_000_000,
        )
        searcher.set_search_properties(METRIC, mode, domains)
        return searcher

    def feed(self, searcher: BayesOptSearch, point: Place) -> None:
        searcher._points_to_evaluate = [point]


class Nevergrad(_Wrapped):
    """Nevergrad's derivative-free optimizers.

    Attributes:
        optimizer: one of those that need no thread; NGOpt, which chooses by itself, is not among them.
    """

    name: Literal["nevergrad"] = "nevergrad"
    optimizer: Literal["OnePlusOne", "TwoPointsDE", "DE", "PSO", "CMA"] = "OnePlusOne"

    title: ClassVar[str] = "evolution strategies and others through Ray's NevergradSearch"
    paper: ClassVar[str] = "Rapin & Teytaud 2018, Nevergrad"
    requires: ClassVar[dict[str, str]] = {"nevergrad": "nevergrad==1.0.12"}
    limits: ClassVar[str] = (
        "nevergrad 1.0.12 works; NGOpt is left out because for few real parameters it chooses COBYLA in a thread, "
        "which waits for ever when a proposal is never told (seen with a constraint on two parameters)"
    )

    def startup(self, space: SearchSpace, n_trials: int) -> int:
        return {"TwoPointsDE": 30, "DE": 30, "PSO": 40}.get(self.optimizer, 0)  # the first generation

    def make(self, domains: Domains, mode: Mode, seed: int, n_trials: int) -> NevergradSearch:
        import nevergrad
        from ray.tune.search.nevergrad import NevergradSearch

        searcher = NevergradSearch(nevergrad.optimizers.registry[self.optimizer], {"budget": n_trials})
        searcher.set_search_properties(METRIC, mode, domains)
        return searcher

    def feed(self, searcher: NevergradSearch, point: Place) -> None:
        searcher._nevergrad_opt.suggest(point)


class Hebo(_Wrapped):
    """HEBO: a Gaussian process with warped input and output, several acquisition functions at once."""

    name: Literal["hebo"] = "hebo"

    title: ClassVar[str] = "heteroscedastic Gaussian process through Ray's HEBOSearch"
    paper: ClassVar[str] = "Cowen-Rivers et al. 2022, arXiv 2012.03826"
    requires: ClassVar[dict[str, str]] = {"hebo": "--no-deps HEBO==0.3.6"}
    breaks_from: ClassVar[dict[str, str]] = {"pymoo": "0.6.1.6"}
    uses_torch: ClassVar[bool] = True

    limits: ClassVar[str] = (
        "HEBO 0.3.6 asks for numpy below 1.25, so pip refuses it beside numpy 2.4 (and picks 0.3.2, which fails on "
        "import: no module named 'pymoo.factory'); installed with --no-deps, with torch, GPy, gpytorch, catboost, "
        "disjoint-set and pymoo 0.6.1.5, it works (pymoo 0.6.1.6 and later seed themselves from the operating "
        "system: seen with 0.6.2, the same seed gave other trials)"
    )

    def startup(self, space: SearchSpace, n_trials: int) -> int:
        return 1 + len(varying(space))

    def make(self, domains: Domains, mode: Mode, seed: int, n_trials: int) -> HEBOSearch:
        from ray.tune.search.hebo import HEBOSearch

        # Ten lines on standard output for each fit that fails, hundreds a study; it continues with what it has.
        import_module("hebo.models.gp.gp").__dict__["print"] = lambda *_, **__: None
        searcher = HEBOSearch(metric=METRIC, mode=mode, max_concurrent=1_000_000)
        searcher._max_concurrent = 1  # how many it suggests at a time; how many may run is the study's business
        searcher.set_search_properties(METRIC, mode, domains)
        return searcher

    def feed(self, searcher: HEBOSearch, point: Place) -> None:
        searcher._initial_points.append(point)


class ZOOpt(_Wrapped):
    """ZOOpt's classification-based search (SRacos).

    Attributes:
        algo: "asracos" or "sracos".
        budget: trials it plans for; the study's if left out.
    """

    name: Literal["zoopt"] = "zoopt"
    algo: Literal["asracos", "sracos"] = "asracos"
    budget: int | None = Field(default=None, ge=3, le=1_000_000)

    title: ClassVar[str] = "classification-based search through Ray's ZOOptSearch"
    paper: ClassVar[str] = "Hu, Qian & Yu 2017 (AAAI), SRacos"
    requires: ClassVar[dict[str, str]] = {"zoopt": "zoopt==0.4.2"}
    limits: ClassVar[str] = (
        "zoopt 0.4.2 works with three repairs: driven one trial at a time its own lock never opens (suggest answers "
        "None for ever after its first samples), it keeps the digits of one space per process (IndexError in "
        "rand_sample with two studies), and it raises once it has drawn each of a few points (ValueError: high <= 0)"
    )

    def startup(self, space: SearchSpace, n_trials: int) -> int:
        planned = self._planned(n_trials)  # by it the library sets the size of its first sample
        return next((size for most, size in ((50, 4), (100, 6), (1000, 12)) if planned <= most), 22)

    def _planned(self, n_trials: int) -> int:
        return self.budget or max(n_trials, 3)  # with fewer the library ends the process

    def make(self, domains: Domains, mode: Mode, seed: int, n_trials: int) -> ZOOptSearch:
        from ray.tune.search.zoopt import ZOOptSearch
        from zoopt.utils.zoo_global import gl

        searcher = ZOOptSearch(
            algo=self.algo, budget=self._planned(n_trials), mode=mode, metric=METRIC, parallel_num=1_000_000
        )
        searcher.set_search_properties(METRIC, mode, domains)
        searcher.digits, searcher.first = gl.float_precisions, searcher.optimizer.get_parameters().get_train_size()
        searcher.suggest = _or_not_now(searcher.suggest)
        return searcher

    def tell(self, searcher: ZOOptSearch, trial: str, point: Place, value: float) -> bool:
        """The wrapper ignores given points, so the optimizer hears of this one as if it had proposed it itself."""
        from zoopt import Solution

        optimizer = searcher.optimizer
        optimizer.live_num += 1
        optimizer.init_num += optimizer.init_num < searcher.first
        optimizer.complete(Solution(x=list(point.values())), loss_of(value, searcher.mode))
        return True

    def unlock(self, searcher: ZOOptSearch) -> None:
        searcher.optimizer.semaphore = 1

    def enter(self, searcher: ZOOptSearch) -> None:
        from zoopt.utils.zoo_global import gl

        gl.float_precisions = searcher.digits  # else those of whichever study was made last


class _Flaml(_Wrapped):
    requires: ClassVar[dict[str, str]] = {"flaml": "flaml==2.7.0"}
    limits: ClassVar[str] = (
        "flaml 2.7.0 works with optuna 5; its extra 'blendsearch' asks for optuna 3.6 or below, so install it without"
    )

    def start_points(self, space: SearchSpace) -> list[Configuration]:
        """Return the default configuration with everything at its cheap end."""
        try:
            default = space.default()
        except SpaceError:  # the constraints refuse it
            return []
        there = space.existing(default).values()
        cheap = {p.name: p.cheapest for p in there if isinstance(p, Float | Int) and p.cheapest is not None}
        return [{**default, **cheap}] if cheap else []

    def domains(self, space: SearchSpace) -> Domains:
        found = super().domains(space)
        for key, parameter in varying(space).items():
            if isinstance(parameter, Float | Int) and parameter.cheapest is not None:
                found[key].cheapest = 0.0 if parameter.cheap == "low" else 1.0
        return found

    def make(self, domains: Domains, mode: Mode, seed: int, n_trials: int) -> Searcher:
        from flaml import tune
        from flaml.tune.searcher import blendsearch

        own = {
            key: tune.choice(list(domain.categories)) if hasattr(domain, "categories") else tune.uniform(0.0, 1.0)
            for key, domain in domains.items()
        }
        kind = getattr(blendsearch, type(self).__name__)
        cheap = {key: domain.cheapest for key, domain in domains.items() if hasattr(domain, "cheapest")}
        return kind(metric=METRIC, mode=mode, space=own, seed=seed % 2**31, low_cost_partial_config=cheap)

    def feed(self, searcher: Searcher, point: Place) -> None:
        searcher._points_to_evaluate.insert(0, dict(point))

    def tell(self, searcher: Searcher, trial: str, point: Place, value: float) -> bool:
        """Tell a point with its value in `suggest`, which then answers nothing."""
        self.feed(searcher, point)
        searcher._evaluated_rewards.insert(0, value)
        searcher.suggest(trial)
        return True


class CFO(_Flaml):
    """FLAML's cost-frugal local search.

    It begins at the better of the default configuration and its cheap corner: the default with every parameter that
    says which end is `cheap` at that end. What trials really cost changes nothing that it proposes.
    """

    name: Literal["cfo"] = "cfo"

    title: ClassVar[str] = "cost-frugal local search (FLAML)"
    paper: ClassVar[str] = "Wu, Wang & Huang 2021 (AAAI), arXiv 2005.01571"

    def tell(self, searcher: Searcher, trial: str, point: Place, value: float) -> bool:
        """It has one local search, which begins anew at a better point than its own."""
        threads, loss = searcher._search_thread_pool, loss_of(value, searcher.mode)
        for number in [number for number, thread in threads.items() if number and loss < thread.obj_best1]:
            del threads[number]
        return super().tell(searcher, trial, point, value)


class BlendSearch(_Flaml):
    """FLAML's mixture of cost-frugal local search and Optuna's TPE, the latter at first around the cheap corner.

    Every trial costs the same for it: measured seconds would let the clock decide which search goes on.
    """

    name: Literal["blendsearch"] = "blendsearch"

    title: ClassVar[str] = "local search blended with TPE (FLAML)"
    paper: ClassVar[str] = "Wang et al. 2021 (ICLR), BlendSearch"


def _or_not_now(suggest: Callable[[str], object]) -> Callable[[str], object]:
    """Answer None, which is "not now", where zoopt raises since it has drawn each of a space's few points."""

    def suggested(trial: str) -> object:
        with contextlib.suppress(ValueError):
            return suggest(trial)
        return None

    return suggested
