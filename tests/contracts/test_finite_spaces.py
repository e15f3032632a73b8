"""A space of fewer points than trials: each point is tried once, and the study ends, whatever the algorithm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shown_output import codes_of
from sklearn.linear_model import LinearRegression, Ridge

from search_spaces import Choice, Constant, Float, Int, SearchSpace, algorithms
from search_spaces.parameter_grid import Untried
from search_spaces.proposer import Outcome
from search_spaces.searcher import PATIENCE, StudySearcher
from tuning import RunResult, TuneRunner
from tuning.notes import PlanCode
from tuning.steps import Step


def odd(config: dict[str, Any]) -> bool:
    return config["n"] % 2 == 1


def rare(config: dict[str, Any]) -> bool:
    return config["n"] == config["m"] and config["n"] % 20 == 10


SPACES = {
    1: SearchSpace([Constant("always", [1]), Choice("a", ["x"])]),
    2: SearchSpace([Choice("a", ["x", "y"])]),
    3: SearchSpace([Choice("a", ["x", "y"]), Int("b", 0, 1, when={"a": "x"})]),
    4: SearchSpace([Float("x", 0, 1, step=1 / 3)]),
    5: SearchSpace([Int("n", 1, 10, default=5)], constraints=[odd]),
    6: SearchSpace([Choice("layers", [[1], [2, 2], None]), Choice("b", [1, 1.0])]),
    7: SearchSpace([Int("n", 1, 7, log=True)]),
}
LIMITED = {"n_startup_trials": 2}
VARIANTS: dict[str, Any] = {
    name: {"name": name, **(LIMITED if name in ("optuna", "hyperopt") else {})}
    for name in algorithms.names()
    if type(algorithms.parse(name)).installed()
}
VARIANTS["grid"]["levels"] = 10  # of a number, as by default 5 are tried
VARIANTS["optuna's CMA-ES"] = {"name": "optuna", "sampler": "cmaes", **LIMITED}
LONG = {"bayesopt", "blendsearch", "bohb", "cfo", "hyperopt", "nevergrad", "zoopt"}


def text(config: Any) -> str:
    return json.dumps(config, sort_keys=True)


def score(config: dict[str, Any]) -> float:
    return float(sum(map(ord, text(config))) % 17)


def runner_of(space: SearchSpace, trials: int, **fields: Any) -> TuneRunner:
    fields = {"objective": score, "algorithm": "random", "scheduler": "fifo", **fields}
    return TuneRunner(
        search_space=space, metric="score", mode="max", trials=trials, mlflow=False, report=False, **fields
    )


def search(folder: Path, space: SearchSpace, trials: int, *, in_process: bool = True, **fields: Any) -> RunResult:
    return runner_of(space, trials, **fields).run(str(folder), progress=False, in_process=in_process)


def tried(result: RunResult) -> list[str]:
    return [text(record.config) for record in result.trial_records]


def codes(result: RunResult) -> list[str]:
    return [note.code.name for note in result.study_records[0].notes]


def points(space: SearchSpace) -> list[str]:
    return [text(config) for config in space.grid(10)]


@pytest.mark.usefixtures("quick_acquisition")
@pytest.mark.parametrize("size", SPACES)
@pytest.mark.parametrize("variant", [pytest.param(v, marks=pytest.mark.long if v in LONG else ()) for v in VARIANTS])
def test_each_point_is_proposed_once(variant: str, size: int) -> None:
    space, most = SPACES[size], 3 * size + 2
    algorithm = algorithms.parse(VARIANTS[variant])
    begin = [space.default()]  # as a study does
    searcher = algorithm.build(space, metric="score", mode="max", seed=7, n_trials=most, points=begin, once=True)
    found = list[str]()
    while isinstance(config := searcher.suggest(str(len(found))), dict) and len(found) < most:
        searcher.on_trial_complete(str(len(found)), {"score": score(config)})
        found.append(text(config))
    assert config == "FINISHED"
    assert len(points(space)) == size
    assert sorted(found) == sorted(points(space))


@pytest.mark.parametrize("size", SPACES)
@pytest.mark.parametrize("variant", ["grid", "optuna"])
def test_a_study_tries_each_point_once_and_ends(tmp_path: Path, variant: str, size: int) -> None:
    space = SPACES[size]
    result = search(tmp_path / "run", space, 3 * size + 2, algorithm=VARIANTS[variant])
    assert sorted(tried(result)) == sorted(points(space))
    assert result.leaderboard()["status"].tolist() == ["ok"]
    assert codes(result) == ["NO_CONFIGURATION_LEFT", "TRIALS_RUN"]
    best = max(points(space), key=lambda each: score(json.loads(each)))
    assert score(result.best_config()) == score(json.loads(best))


@pytest.mark.parametrize("variant", ["grid", "random", "optuna", "sobol"])
def test_the_plan_names_a_grid_that_a_study_does_not_get_through(variant: str) -> None:
    for trials in (5, 10):
        plan = runner_of(SPACES[6], trials, algorithm=VARIANTS[variant]).plan()
        assert (PlanCode.GRID_CUT in codes_of(plan)) is (variant == "grid" and trials < 6)


@pytest.mark.parametrize(("highest", "said"), [(9, False), (10, False), (11, True)])
def test_more_trials_are_asked_for_only_where_there_are_more_points_than_random_ones(highest: int, said: bool) -> None:
    space = SearchSpace([Int("n", 1, highest)])
    plan = runner_of(space, 10, algorithm={"name": "optuna", "n_startup_trials": 10}).plan()
    assert (PlanCode.RANDOM_SEARCH in codes_of(plan)) is said


@pytest.mark.parametrize("variant", ["random", "optuna", "sobol", pytest.param("hyperopt", marks=pytest.mark.long)])
def test_no_point_is_tried_twice_where_there_are_more_than_trials(tmp_path: Path, variant: str) -> None:
    space = SearchSpace([Int("a", 1, 5), Int("b", 1, 5)])
    found = tried(search(tmp_path / "run", space, 20, algorithm=VARIANTS[variant]))
    assert len(found) == len(set(found)) == 20


@pytest.mark.long
@pytest.mark.parametrize("variant", ["grid", "random", "optuna"])
def test_a_resume_with_more_trials_goes_on_to_the_last_point(tmp_path: Path, variant: str) -> None:
    search(tmp_path / "run", SPACES[6], 4, algorithm=VARIANTS[variant])
    before = {record.key: record.started for record in RunResult(tmp_path / "run").trial_records}
    more = {"trials": 20, "objective": score, "progress": False, "in_process": True}
    result = TuneRunner.resume(str(tmp_path / "run"), **more)
    assert sorted(tried(result)) == sorted(points(SPACES[6]))
    assert {record.key: record.started for record in result.trial_records}.items() >= before.items()


@pytest.mark.parametrize("scheduler", ["asha", "hyperband", "median"])
def test_trials_that_are_stopped_or_fail_have_been_tried(tmp_path: Path, scheduler: str) -> None:
    def steps(config: dict[str, Any]) -> Iterator[float]:
        for step in range(1, 10):
            if config["n"] % 3 == 0:
                raise ValueError("a multiple of three")
            yield config["n"] + step

    space = SearchSpace([Int("n", 1, 7)])
    result = search(tmp_path / "run", space, 30, objective=steps, steps=9, scheduler=scheduler)
    assert sorted(tried(result)) == sorted(points(space))
    assert sum(record.state == "failed" for record in result.trial_records) == 2


def test_a_point_whose_score_is_known_is_tried_too_since_models_come_from_trials(tmp_path: Path) -> None:
    known = [{"config": {"n": n}, "score": float(n)} for n in (2, 3, 5)]
    space = SearchSpace([Int("n", 1, 7)])
    found = tried(search(tmp_path / "run", space, 30, warm_start=known))
    assert sorted(found) == points(space)


@pytest.mark.long
def test_a_population_may_begin_with_the_same_point_several_times(tmp_path: Path) -> None:
    """Its trials change while they train."""

    def grows(config: dict[str, Any], state: Any) -> Iterator[Step]:
        done, weight = state or (0, 0)
        for step in range(done + 1, 7):
            weight += config["n"]
            yield Step(step, weight, get_state=lambda step=step, weight=weight: (step, weight))

    space = SearchSpace([Int("n", 1, 3)])
    fields: dict[str, Any] = {"objective": grows, "steps": 6, "scheduler": {"name": "pbt", "perturbation_interval": 2}}
    assert len(search(tmp_path / "run", space, 13, **fields).trial_records) == 13


@pytest.mark.long
def test_models_without_parameters_are_fitted_once_each(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": range(30), "y": [number * 2.0 + number % 3 for number in range(30)]})
    space = {"model": {"type": "choice", "values": ["one", "other"]}}
    runner = TuneRunner(
        data=frame, target="y", task="regression", models={"one": LinearRegression(), "other": Ridge()}, trials=9,
        search_space=space, algorithm="random", mlflow=False, report=False,
    )  # fmt: skip
    result = runner.run(str(tmp_path / "run"), progress=False, in_process=True)
    assert sorted(record.config["model"] for record in result.trial_records) == ["one", "other"]


@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.parametrize("placement", ["packed", "spread"])
def test_on_ray_a_study_ends_with_its_last_point(tmp_path: Path, placement: str) -> None:
    fields: dict[str, Any] = {"algorithm": VARIANTS["optuna"], "placement": placement, "slots": 2}
    result = search(tmp_path / "run", SPACES[4], 9, **fields, in_process=False)
    assert sorted(tried(result)) == sorted(points(SPACES[4]))
    assert codes(result) == ["NO_CONFIGURATION_LEFT", "TRIALS_RUN"]


def test_what_is_left_is_tried_in_the_order_of_the_seed() -> None:
    space = SearchSpace([Int("a", 1, 9), Int("b", 1, 9)])

    def order(seed: int) -> list[str]:
        searcher = algorithms.parse("random").build(space, metric="m", mode="max", seed=seed, once=True)
        return [text(searcher.suggest(str(number))) for number in range(82)]

    assert order(1) == order(1)
    assert order(1)[-1] == order(2)[-1] == '"FINISHED"'
    assert sorted(order(1)) == sorted(order(2))
    assert order(1)[60:81] != sorted(order(1)[60:81])
    assert order(1)[60:81] != order(2)[60:81]


def test_an_algorithm_hears_again_how_a_point_ended_that_it_proposes_again() -> None:
    class Stubborn:
        """Proposes one point for ever."""

        def __init__(self) -> None:
            self.heard: list[object] = []

        def propose(self, number: int) -> dict[str, Any]:
            return {"a": "x"}

        def adopt(self, number: int, config: object) -> None:
            self.heard.append(config)

        def learn(self, number: int, outcome: Outcome) -> None:
            self.heard.append(outcome.value)

    space = SearchSpace([Choice("a", ["x", "y"])])
    assert space.points is not None
    stubborn = Stubborn()
    untried = Untried(space.points, 0)
    searcher = StudySearcher(stubborn, metric="m", mode="max", untried=untried)  # type: ignore[arg-type]  # not Ray's
    assert searcher.suggest("0") == {"a": "x"}
    searcher.on_trial_complete("0", {"m": 7.0})
    assert searcher.suggest("1") == {"a": "y"}
    assert stubborn.heard == [7.0, *[7.0] * PATIENCE, {"a": "y"}]
    assert searcher.suggest("2") == "FINISHED"


@pytest.mark.long
@pytest.mark.parametrize("variant", ["random", "sobol", "optuna"])
def test_the_few_points_that_constraints_leave_are_found(tmp_path: Path, variant: str) -> None:
    """Fewer than chance hits in as many draws as it may make."""
    space = SearchSpace([Int("n", 1, 100, default=10), Int("m", 1, 99, default=10)], constraints=[rare])
    found = tried(search(tmp_path / "run", space, 30, algorithm=VARIANTS[variant]))
    assert sorted(found) == sorted(text({"n": n, "m": n}) for n in range(10, 100, 20))
