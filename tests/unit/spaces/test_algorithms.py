"""What single algorithms promise beyond the contract, and the page about them."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from algorithm_table import written
from paths import ROOT

import schedulers
from search_spaces import Choice, Float, Int, SearchSpace, algorithms, presets


def build(definition: Any, space: SearchSpace, **more: Any) -> Any:
    return algorithms.parse(definition).build(space, metric="loss", mode="min", seed=more.pop("seed", 1), **more)


def suggestions(searcher: Any, count: int) -> list[Any]:
    return [searcher.suggest(str(number)) for number in range(count)]


def test_the_page_about_algorithms_is_what_the_files_say() -> None:
    page = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
    assert page == written(page), "python docs/algorithm_table.py writes what belongs there"
    assert all(f"| `{name}` |" in page for name in algorithms.names())


def test_a_grid_goes_through_in_order_and_ends() -> None:
    space = SearchSpace([Choice("c", ["a", "b"]), Int("n", 1, 2), Float("x", 0, 1)])
    spec = algorithms.parse({"name": "grid", "levels": {"x": 3}})
    assert spec.size(space) == 12
    configs = suggestions(build(spec, space), 13)
    assert configs[:4] == [
        {"c": "a", "n": 1, "x": 0.0},
        {"c": "a", "n": 1, "x": 0.5},
        {"c": "a", "n": 1, "x": 1.0},
        {"c": "a", "n": 2, "x": 0.0},
    ]
    assert configs[12] == "FINISHED"
    given = build(spec, space, points=[{"c": "b"}], evaluated=[({"c": "a", "n": 1, "x": 0.0}, 3.0)])
    configs = suggestions(given, 13)
    assert configs[:2] == [{"c": "b", "n": 2, "x": 0.5}, {"c": "a", "n": 1, "x": 0.5}]
    assert configs.count({"c": "b", "n": 2, "x": 0.5}) == 1
    assert configs[11:] == ["FINISHED", "FINISHED"]


def only_low(config: dict[str, Any]) -> bool:
    return bool(config["n"] < 3)


def test_a_grid_counts_what_constraints_leave() -> None:
    spec = algorithms.parse("grid")
    assert spec.size(SearchSpace([Int("n", 1, 5), Choice("c", ["a", "b"])], [only_low])) == 4
    with pytest.raises(ValueError, match="the constraints refuse every combination"):
        spec.check(SearchSpace([Int("n", 3, 5)], [only_low]))


def test_sobol_covers_more_evenly_than_chance() -> None:
    space = SearchSpace([Float("x", 0, 1), Float("y", 0, 1)])

    def filled(name: str) -> int:
        cells = {(int(c["x"] * 8), int(c["y"] * 8)) for c in suggestions(build(name, space), 64)}
        return len(cells)

    assert filled("sobol") == 64  # a (0, 6, 2)-net has one point in each of the 8 x 8 cells
    assert filled("random") < 55


# --- optuna -----------------------------------------------------------------------------------------


def run(searcher: Any, results: list[Any]) -> list[Any]:
    configs = []
    for number, result in enumerate(results):
        configs.append(searcher.suggest(str(number)))
        searcher.on_trial_complete(str(number), result, error=result is None)
    return configs


def test_optuna_hears_how_every_trial_ended() -> None:
    from optuna.trial import TrialState

    searcher = build("optuna", presets.load("ridge"))
    good = {"loss": 1.0, "training_iteration": 5}
    run(searcher, [good, {**good, "loss": math.nan}, None, {**good, "stopped": True, "training_iteration": 2}])
    trials = searcher.proposer.study.get_trials(deepcopy=False)
    assert [t.state for t in trials] == [TrialState.COMPLETE, *[TrialState.PRUNED] * 3]
    assert [t.value for t in trials] == [1.0, None, None, 1.0]
    assert trials[3].intermediate_values == {2: 1.0}


@pytest.mark.parametrize("sampler", ["tpe", "cmaes"])
def test_optuna_is_asked_no_sooner_than_needed_and_says_the_same(sampler: str) -> None:
    """It is told what has happened when its sampler is first asked; a study that heard everything at once agrees."""
    space = SearchSpace([Float("x", 0, 1), Float("y", 0, 1)])
    late, early = (build({"name": "optuna", "sampler": sampler}, space, seed=3) for _ in range(2))
    assert early.proposer.study.get_trials() == []
    results = [{"loss": math.sin(number), "training_iteration": 1} for number in range(25)]
    results[4] = {"loss": math.nan, "training_iteration": 1}
    assert run(late, results) == run(early, results)
    assert [trial.params for trial in late.proposer.study.get_trials()] == [
        trial.params for trial in early.proposer.study.get_trials()
    ]


@pytest.mark.parametrize(("sampler", "start"), [("tpe", 10), ("cmaes", 16)])
def test_a_sampler_learns_although_asha_stops_most_trials(sampler: str, start: int) -> None:
    """Where the best lies elsewhere, all proposals after the start differ; CMA-ES's start has a generation on top."""
    space = SearchSpace([Float("x", 0, 1), Float("y", 0, 1)])

    def path(best: float) -> tuple[list[Any], list[bool]]:
        searcher = build({"name": "optuna", "sampler": sampler}, space, points=[space.default()], seed=0)
        scheduler: Any = schedulers.parse("asha").build(metric="loss", mode="min", max_steps=9, seed=0)
        configs, full = [], []
        for number in range(30):
            configs.append(searcher.suggest(str(number)))
            trial: Any = SimpleNamespace(trial_id=str(number))
            scheduler.on_trial_add(None, trial)
            for step in range(1, 10):
                loss = (configs[-1]["x"] - best) ** 2 + (configs[-1]["y"] - best) ** 2 + 1 / step
                result = {"loss": loss, "training_iteration": step}
                if scheduler.on_trial_result(None, trial, result) == "STOP":
                    break
            full.append(step == 9)
            searcher.on_trial_complete(str(number), {**result, "stopped": step < 9})
        return configs, full

    (low, full), (high, _) = path(0.1), path(0.9)
    assert sum(full[:start]) < 10  # too few to begin with, if only these counted
    assert low[:start] == high[:start]
    assert not [number for number in range(start, 30) if low[number] == high[number]]
    nearest = [min(abs(config["x"] - 0.1) + abs(config["y"] - 0.1) for config in part) for part in (low, high)]
    assert nearest[0] < nearest[1]


def test_optuna_avoids_a_branch_that_always_fails() -> None:
    space = SearchSpace([Choice("model", ["good", "broken"]), Float("x", 0, 1)])
    searcher = build("optuna", space)
    taken = []
    for number in range(60):
        config = searcher.suggest(str(number))
        taken.append(config["model"])
        failed = config["model"] == "broken"
        searcher.on_trial_complete(str(number), None if failed else {"loss": config["x"]}, error=failed)
    assert taken[20:].count("broken") < 8


def test_optuna_profiles_differ_after_the_same_start() -> None:
    space = SearchSpace([Float("x", 0, 1), Float("y", 0, 1)])

    def path(definition: Any) -> list[Any]:
        searcher = build(definition, space)
        configs = []
        for number in range(14):
            configs.append(searcher.suggest(str(number)))
            searcher.on_trial_complete(str(number), {"loss": sum(configs[-1].values())})
        return configs

    v5, v4 = path("optuna"), path({"name": "optuna", "profile": "v4"})
    assert v5[:10] == v4[:10]
    assert v5[10:] != v4[10:]


def test_optuna_models_two_parameters_of_one_name_apart() -> None:
    space = SearchSpace(
        [
            Choice("m", ["low", "high"]),
            Float("x", 0, 1, when={"m": "low"}),
            Float("x", 100, 101, when={"m": "high"}),
        ]
    )
    searcher = build("optuna", space)
    for number in range(40):
        config = searcher.suggest(str(number))
        assert space.contains(config)
        best = 0.2 if config["m"] == "low" else 100.8
        searcher.on_trial_complete(str(number), {"loss": abs(config["x"] - best)})
    labels = {label for trial in searcher.proposer.study.get_trials(deepcopy=False) for label in trial.params}
    assert labels == {"m", "x[m=low]", "x[m=high]"}


def test_optuna_does_not_announce_every_study(caplog: pytest.LogCaptureFixture, capsys: Any) -> None:
    build("optuna", presets.load("ridge"))
    assert "study created" not in caplog.text + capsys.readouterr().err


# --- cfo and blendsearch -----------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["cfo", "blendsearch"])
def test_a_cost_frugal_search_begins_at_the_better_of_the_default_and_the_cheap_corner(algorithm: str) -> None:
    pytest.importorskip("flaml")
    space = presets.load("xgboost")
    default = space.default()

    def depths(sign: float) -> list[int]:
        searcher = build(algorithm, space, points=[default])
        configs = []
        for number in range(12):
            configs.append(searcher.suggest(str(number)))
            searcher.on_trial_complete(str(number), {"loss": sign * configs[-1]["max_depth"]})
        assert configs[:2] == [default, {**default, "max_depth": 1}]
        return [config["max_depth"] for config in configs[4:]]

    assert max(depths(1.0)) <= 3
    assert min(depths(-1.0)) >= 5


def test_a_search_without_a_cheap_end_begins_at_the_default_alone() -> None:
    pytest.importorskip("flaml")
    assert algorithms.parse("cfo").start_points(SearchSpace([Float("x", 0, 1)])) == []
    assert algorithms.parse("optuna").start_points(presets.load("xgboost")) == []


# --- bohb and hyperband -----------------------------------------------------------------------------


@pytest.mark.long
def test_bohb_learns_at_the_largest_budget() -> None:
    space = SearchSpace([Float("x", 0, 1)])

    def chosen(good_at_full_budget: float) -> float:
        searcher = build({"name": "bohb", "random_fraction": 0, "num_samples": 16}, space)
        for number in range(25):
            config = searcher.suggest(str(number))
            early = {"loss": abs(config["x"] - 0.1), "training_iteration": 1, "hyperband_info": {"budget": 1}}
            searcher.on_trial_result(str(number), early)
            full = {"loss": abs(config["x"] - good_at_full_budget), "training_iteration": 9}
            searcher.on_trial_complete(str(number), full)
        return float(np.median([searcher.suggest(f"n{i}")["x"] for i in range(9)]))

    assert chosen(0.9) == pytest.approx(0.9, abs=0.15)
    assert chosen(0.1) == pytest.approx(0.1, abs=0.15)


@pytest.mark.long
def test_bohb_says_nothing_about_good_trials_of_one_kind(caplog: pytest.LogCaptureFixture, capsys: Any) -> None:
    """hpbandster logs nine lines whenever all good trials took the same value of a choice."""
    points = [{"c": "good"}] * 2 + [{"c": "bad"}] * 3
    searcher = build({"name": "bohb", "random_fraction": 0}, SearchSpace([Choice("c", ["good", "bad"])]), points=points)
    for number in range(8):
        config = searcher.suggest(str(number))
        searcher.on_trial_complete(str(number), {"loss": float(config["c"] == "bad"), "training_iteration": 1})
    assert caplog.text + capsys.readouterr().err == ""


def test_any_searcher_runs_under_hyperband_for_bohb() -> None:
    """Ray's scheduler calls `on_pause` and `on_unpause` of the searcher it finds in the controller."""
    from ray.tune.schedulers import HyperBandForBOHB

    source = Path(__import__("inspect").getsourcefile(HyperBandForBOHB)).read_text(encoding="utf-8")
    called = {word.split("(")[0] for word in source.split("searcher.")[1:]}
    searcher = build("random", presets.load("ridge"))
    assert called == {"on_pause", "on_unpause"}
    assert all(callable(getattr(searcher, name)) for name in called)
