"""What a plan says of a search that will not do what its names promise."""

from __future__ import annotations

from typing import Any

import pytest
from shown_output import note_texts

from search_spaces import Float, SearchSpace, algorithms
from search_spaces.algorithms.base import Algorithm
from tuning.definition.definition import define
from tuning.notes import PlanCode
from tuning.notes.note import ordered
from tuning.planning.plan import make_plan

SPACE = SearchSpace([Float(name, -5, 5, default=4.0) for name in "xyz"])


def notes(**fields: Any) -> str:
    base: dict[str, Any] = {"objective": _steps, "search_space": SPACE, "metric": "loss", "mode": "min", "steps": 9}
    return "\n".join(note_texts(make_plan(define({**base, "slots": 1, "trials": 60, **fields}))))


def _steps(config: dict[str, Any], state: object) -> Any:
    yield 1.0


@pytest.mark.parametrize("algorithm", ["optuna", "hyperopt", "bohb", "bayesopt", "zoopt", "nevergrad", "ax", "hebo"])
def test_an_algorithm_whose_start_is_as_long_as_a_study_is_called_random_search(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Algorithm, "_check_installed", lambda self: None)
    given = {"name": algorithm, **({"optimizer": "DE"} if algorithm == "nevergrad" else {})}
    start = algorithms.parse(given).startup(SPACE, 4)
    said = f"{algorithm} is random search here: it proposes nothing before {start} trials have ended"
    assert f"{said}, and a study has {start}; raise trials" in notes(algorithm=given, trials=start)
    assert "random search" not in notes(algorithm=given, trials=start + 1)


def test_scores_that_are_known_shorten_the_start() -> None:
    known = [{"config": {"x": x}, "score": 1.0} for x in (0.0, 1.0, 2.0)]
    assert "or lower n_startup_trials" in notes(trials=10)
    assert "random search" not in notes(trials=8, warm_start=known)
    assert "nothing before 7 trials have ended, and a study has 7" in notes(trials=7, warm_start=known)


def test_no_algorithm_without_a_model_is_called_random_search() -> None:
    for algorithm in ("random", "sobol", "grid", "cfo", "blendsearch"):
        assert "is random search" not in notes(algorithm=algorithm, trials=2)


def test_a_sampler_that_hears_of_full_trials_only_is_named_with_the_scheduler_that_stops_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Algorithm, "_check_installed", lambda self: None)
    monkeypatch.setattr(type(algorithms.parse("optuna")), "_check_installed", lambda self: None)
    said = "optuna (sampler: gp) learns from full trials only, and asha stops most"
    gp = {"name": "optuna", "sampler": "gp"}
    assert said in notes(algorithm=gp, scheduler="asha")
    assert said in notes(compare={"algorithms": [{"algorithm": gp, "scheduler": "asha"}, "random"]})
    assert "full trials only" not in notes(algorithm=gp, scheduler="fifo")
    assert "full trials only" not in notes(algorithm=gp, scheduler="asha", steps=1)
    assert "full trials only" not in notes(algorithm={"name": "optuna", "sampler": "cmaes"}, scheduler="asha")


@pytest.mark.parametrize("scheduler", ["hyperband", "bohb", "pbt", "pb2"])
def test_slots_that_a_study_under_a_scheduler_that_pauses_cannot_use_are_counted(scheduler: str) -> None:
    fields: dict[str, Any] = {"scheduler": scheduler, "algorithm": "bohb" if scheduler == "bohb" else "random"}
    said = notes(slots=8, placement="packed", **fields)
    assert f"only 1 of 8 slots work, as a study under {scheduler} is one process" in said
    assert "slots work" not in notes(slots=1, **fields)
    assert "slots work" not in notes(slots=8, **{**fields, "scheduler": "asha"})


def test_a_grid_that_is_not_got_through_is_said_and_one_that_ends_is_not() -> None:
    assert "grid has 65 configurations, and a study tries 60: raise trials to try all." in notes(
        algorithm={"name": "grid", "levels": 4}, slots=1
    )
    assert "configurations" not in notes(algorithm={"name": "grid", "levels": 3}, slots=1)


@pytest.mark.parametrize(("fields", "said"), [({"algorithm": "optuna"}, True), ({}, False), ({"trials": 9}, False)])
def test_an_algorithm_that_is_asked_for_and_proposes_nothing_is_named(fields: dict[str, Any], said: bool) -> None:
    points = [{"config": {"x": float(x)}} for x in range(4)]
    asked = notes(**{"trials": 5, "warm_start": points, **fields})
    assert ("all 5 trials of a study come from warm_start and portfolio" in asked) == said


def test_notes_come_in_the_order_of_their_worth() -> None:
    slots, customer = PlanCode.MANY_SLOTS(slots=3, cpus=2), PlanCode.NOT_SAMPLED("a", why="b")
    assert ordered([slots, customer, slots]) == (customer, slots)
