"""A user's code changes what it is given, and nobody else notices.

Each search runs twice: with code that changes the lists and dicts of its configuration, or the rows that it gets, and
with the same code that changes nothing. Records, best configuration and scores are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mutation_code
import numpy as np
import pandas as pd
import pytest
from mutation_code import Careless, allowed, change, make, size, spoil
from ray import tune

from search_spaces import Choice, Constant, Float, SearchSpace, algorithms
from tuning import RunResult, TuneRunner
from tuning.steps import Step

#: Values that a user's code can change in place.
VALUES: dict[str, list[Any]] = {
    "lists": [[10], [20], [20, 20]],
    "lists in lists": [[[1], [2]], [[3]], [[], [4]]],
    "dicts": [{"units": 1}, {"units": 2}, {}],
    "dicts of lists": [{"units": [1]}, {"units": [2, 2]}],
    "lists of dicts": [[{"units": 1}], [{"units": 2}, {"units": 3}]],
    "empty ones": [[], {}, None],
    "of many types": [[1, None, "a", 2.5, True], ["a"], {"a": None}],
}
SPACE = SearchSpace(
    [
        Choice("layers", VALUES["lists"]),
        Choice("blocks", VALUES["dicts of lists"]),
        Constant("always", [1, {"a": [2]}]),
        Float("x", 0, 1),
    ]
)
NESTED = {"net": {"layers": tune.choice(VALUES["lists"]), "x": tune.uniform(0, 1)}}
FIRST = {"layers": [20], "blocks": {"units": [1]}, "always": [1, {"a": [2]}], "x": 0.5}
FRAME = pd.DataFrame({"a": np.arange(40.0), "b": np.tile([1.0, 5.0, 2.0, 8.0], 10)}).assign(
    y=lambda rows: rows["a"] + np.cos(rows["b"] * rows["a"])
)
INSTALLED = [name for name in algorithms.names() if type(algorithms.parse(name)).installed()]
LONG = {"bayesopt", "blendsearch", "bohb", "cfo", "hyperopt", "nevergrad", "zoopt"}


def returns(config: dict[str, Any]) -> float:
    found = size(config)
    change(config)
    return found


def yields(config: dict[str, Any]) -> Iterator[dict[str, float]]:
    """Changes its configuration, and the report that it yields, after each step."""
    whole, report = size(config), {"score": 0.0, "other": 1.0}
    for step in range(1, 4):
        yield report | {"score": whole - 1 / step}
        change(config, report)


def populates(config: dict[str, Any], state: Any) -> Iterator[Step]:
    each = config["x"] + size(config["layers"])
    done, total = state or (0, 0.0)
    for step in range(done + 1, 7):
        total += each
        yield Step(step, total, get_state=lambda step=step, total=total: (step, total))
        change(config)


def takes_rows(config: dict[str, Any], data: pd.DataFrame) -> float:
    found = size(config) + float(data["y"].sum())
    if mutation_code.changes:
        data["y"] = 0.0
        data.drop(data.index[:5], inplace=True)
    return found


def nests(config: dict[str, Any]) -> float:
    found = size(config["net"]["layers"]) + config["net"]["x"]
    change(config)
    return found


def search(folder: Path, objective: Any, *, in_process: bool = True, **fields: Any) -> RunResult:
    fields = {"search_space": SPACE, "trials": 8, "algorithm": "random", "scheduler": "fifo", **fields}
    runner = TuneRunner(objective=objective, metric="score", mode="max", mlflow=False, report=False, **fields)
    return runner.run(str(folder), progress=False, in_process=in_process)


def said(result: RunResult) -> Any:
    """What a run says of its trials and its winner."""
    trials = [
        (r.trial, repr(r.config), r.state, r.reason, r.score, r.schedule, [(s.step, s.score) for s in r.steps])
        for r in result.trial_records
    ]
    board = result.leaderboard()[["status", "cv_score", "test_score", "params"]]
    return trials, repr(result.best_config()), board.to_string()


@pytest.fixture
def changed() -> Iterator[Callable[[], None]]:
    """Called after the search whose code changes nothing: from now on it does."""
    yield lambda: mutation_code.changes.append(True)
    mutation_code.changes.clear()


@pytest.mark.parametrize("algorithm", [pytest.param(a, marks=pytest.mark.long if a in LONG else ()) for a in INSTALLED])
def test_every_algorithm_keeps_what_it_has_proposed(tmp_path: Path, algorithm: str, changed: Any) -> None:
    trials = 14 if algorithm == "grid" else 8  # more than one of each list
    expected = said(search(tmp_path / "kept", returns, algorithm=algorithm, trials=trials))
    changed()
    assert said(search(tmp_path / "changed", returns, algorithm=algorithm, trials=trials)) == expected


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("algorithm", ["grid", "random"])
def test_values_of_every_kind_are_recorded_as_they_were_proposed(
    tmp_path: Path, algorithm: str, kind: str, changed: Any
) -> None:
    changed()
    space = SearchSpace([Choice("a", VALUES[kind]), Constant("b", VALUES[kind][0]), Float("x", 0, 1)])
    result = search(tmp_path / "run", returns, search_space=space, algorithm=algorithm, trials=10)
    for record in result.trial_records:
        assert space.contains(record.config)
        assert record.score == size(record.config)
    assert space.contains(result.best_config())
    assert len({repr(record.config) for record in result.trial_records}) == 10


PLACES: dict[str, tuple[Any, dict[str, Any]]] = {
    "steps": (yields, {"steps": 3}),
    "steps that are stopped": (yields, {"steps": 3, "scheduler": "asha"}),
    "steps under HyperBand": (yields, {"steps": 3, "scheduler": "hyperband"}),
    "a population": (populates, {"steps": 6, "scheduler": {"name": "pbt", "perturbation_interval": 2}}),
    "rows": (takes_rows, {"data": FRAME}),
    "a nested space": (nests, {"search_space": NESTED}),
    "points to try first": (returns, {"warm_start": [{"config": FIRST}], "algorithm": "grid"}),
    "a constraint": (returns, {"search_space": SearchSpace(SPACE.parameters, [allowed])}),
    "a constraint of a grid": (
        returns,
        {"search_space": SearchSpace(SPACE.parameters, [allowed]), "algorithm": "grid", "trials": 25},
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_an_objective_or_a_constraint_changes_its_own_copy(tmp_path: Path, place: str, changed: Any) -> None:
    objective, fields = PLACES[place]
    expected = said(search(tmp_path / "kept", objective, **fields))
    changed()
    assert said(search(tmp_path / "changed", objective, **fields)) == expected


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["grid", "optuna"])
def test_a_resumed_search_proposes_the_same(tmp_path: Path, algorithm: str, changed: Any) -> None:
    expected = said(search(tmp_path / "kept", returns, algorithm=algorithm, trials=10))
    changed()
    search(tmp_path / "parts", returns, algorithm=algorithm, trials=6)
    more = {"trials": 10, "objective": returns, "progress": False, "in_process": True}
    assert said(TuneRunner.resume(str(tmp_path / "parts"), **more)) == expected


MODELS: dict[str, dict[str, Any]] = {
    "a factory": {"models": {"own": {"estimator": make, "params": {"extra": [1]}}}},
    "fit": {"models": {"own": {"estimator": Careless, "params": {"extra": {"a": [1]}}}}},
    "fit of a clone": {"models": {"own": Careless(extra=[1, [2]])}},
    "a metric": {"metric": "mutation_code:closeness"},
    "prepare": {"prepare": "mutation_code:prepare"},
}


@pytest.mark.long
@pytest.mark.parametrize("place", MODELS)
def test_code_of_a_model_search_changes_its_own_copy(tmp_path: Path, place: str, changed: Any) -> None:
    fields: dict[str, Any] = {
        "data": FRAME, "target": "y", "task": "regression", "metric": "mae", "models": {"own": Careless()},
        "search_space": {
            "model": {"type": "constant", "value": "own"},
            "alphas": {"type": "choice", "values": VALUES["lists in lists"]},
        },
        "algorithm": "grid", "trials": 3, "save_models": False, "mlflow": False, "report": False, **MODELS[place],
    }  # fmt: skip
    expected = said(TuneRunner(**fields).run(str(tmp_path / "kept"), progress=False, in_process=True))
    changed()
    assert said(TuneRunner(**fields).run(str(tmp_path / "changed"), progress=False, in_process=True)) == expected


@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.parametrize("placement", ["packed", "spread"])
def test_workers_change_their_own_copies(tmp_path: Path, placement: str) -> None:
    fields: dict[str, Any] = {"algorithm": "grid", "slots": 1, "placement": placement}
    expected = said(search(tmp_path / "here", returns, **fields))

    def changes(config: dict[str, Any]) -> float:  # in a worker, where no fixture reaches it
        found = size(config)
        spoil(config)
        return found

    assert said(search(tmp_path / "ray", changes, **fields, in_process=False)) == expected


@pytest.mark.usefixtures("ray_cluster")
def test_helpers_of_a_population_change_their_own_copies(tmp_path: Path) -> None:
    def changes(config: dict[str, Any], state: Any) -> Iterator[Step]:
        for step in populates(config, state):
            yield step
            spoil(config)

    objective, fields = PLACES["a population"]
    fields = {**fields, "slots": 2, "placement": "spread"}
    expected = said(search(tmp_path / "here", objective, **fields))
    assert said(search(tmp_path / "ray", changes, **fields, in_process=False)) == expected
