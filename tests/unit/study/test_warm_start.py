"""Warm start: given configurations are tried first, known scores are learnt from, and neither is lost on a resume."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mlflow_records import trial

from search_spaces import Float, Int, SearchSpace
from tuning import RunResult, TuneRunner
from tuning.definition.definition import define
from tuning.definition.options import WarmStart
from tuning.errors import DefinitionError, PlanError
from tuning.evaluation.fixed import FixedConfiguration, FixedMember
from tuning.study.warm_start import (
    best_entries,
    evaluated_points,
    known_entries,
    of_customer,
    points_to_evaluate,
)

SPACE = SearchSpace([Float("x", -10, 10, default=0.0), Int("n", 1, 8, default=1)])


def loss(config: Mapping[str, Any]) -> float:
    return float((config["x"] - 3) ** 2 + config["n"])


def runner(**fields: Any) -> TuneRunner:
    given: dict[str, Any] = {
        "objective": loss,
        "search_space": SPACE,
        "metric": "loss",
        "mode": "min",
        "mlflow": False,
        "report": False,
    }
    return TuneRunner(**{**given, "trials": 6, **fields})


def tried(result: RunResult) -> list[tuple[float, int]]:
    return [(row["config.x"], row["config.n"]) for _, row in result.trials().sort_values("trial").iterrows()]


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["optuna", "random", {"name": "grid", "levels": 3}])
def test_given_configurations_follow_the_default_each_once(algorithm: Any, tmp_path: Path) -> None:
    entries = [{"config": {"x": 3.0}}, {"config": {"n": 2, "x": 3}}, {"config": {"x": 0.0}}, {"config": {"x": 3.0}}]
    found = runner(algorithm=algorithm, warm_start=entries).run(str(tmp_path / "run"), progress=False, in_process=True)
    assert tried(found)[:3] == [(0.0, 1), (3.0, 1), (3.0, 2)]
    assert len(tried(found)) == 6


@pytest.mark.long
def test_thousands_of_configurations_are_told_apart_in_one_pass() -> None:
    """Each was compared with all before it: 100,000, as many as are allowed, took hours for each customer."""
    entries = [WarmStart(config={"x": number % 20_000 / 20_000}) for number in range(30_000)]
    points = points_to_evaluate(SPACE, entries=entries)
    assert [point["x"] for point in points] == [number / 20_000 for number in range(20_000)]  # 0.0 is the default


def test_studies_that_begin_alike_have_points_of_their_own() -> None:
    portfolio = [{"x": 1.0}, {"x": 2.0, "n": 3}]
    first = points_to_evaluate(SPACE, portfolio)
    expected = [dict(point) for point in first]
    first[0]["x"] = 9.0
    first.pop()
    assert points_to_evaluate(SPACE, portfolio) == expected
    narrow = SearchSpace([Float("x", 0, 1.5), Int("n", 1, 9)])
    assert [point["x"] for point in points_to_evaluate(narrow, portfolio)] == [1.0]
    assert points_to_evaluate(SPACE, portfolio=[{"x": 2.0}])[0]["x"] == 2.0


@pytest.mark.long
def test_known_scores_steer_a_model_and_are_not_tried(tmp_path: Path) -> None:
    known = [{"config": {"x": x / 10, "n": 1}, "score": (x / 10 - 3) ** 2 + 1} for x in range(-100, 101, 5)]
    options = {"name": "optuna", "n_startup_trials": 1}
    many = {"trials": 12}
    warm = runner(algorithm=options, warm_start=known, **many).run(str(tmp_path / "w"), progress=False, in_process=True)
    cold = runner(algorithm=options, **many).run(str(tmp_path / "c"), progress=False, in_process=True)
    assert tried(warm)[0] == (0.0, 1)  # the default is everybody's first trial
    distance = [sum(abs(x - 3) for x, _ in tried(found)[1:]) for found in (warm, cold)]
    assert distance[0] < distance[1]


@pytest.mark.long
def test_the_best_of_one_run_begin_the_next(tmp_path: Path) -> None:
    first = runner().run(str(tmp_path / "first"), progress=False, in_process=True)
    entries = first.warm_start(best=2)
    scores = first.trials().sort_values("score")
    assert [entry["config"]["x"] for entry in entries] == scores["config.x"].tolist()[:2]
    second = runner(warm_start=entries).run(str(tmp_path / "second"), progress=False, in_process=True)
    assert {entry["config"]["x"] for entry in entries} <= {x for x, _ in tried(second)[:3]}
    # It is part of the run: a resume with more trials has the same beginning.
    more = runner(warm_start=entries, trials=8).run(
        str(tmp_path / "second"), progress=False, in_process=True, resume=True
    )
    assert tried(more)[:6] == tried(second)
    assert len(tried(more)) == 8


def test_a_schedule_is_tried_as_it_began() -> None:
    first, last = {"model": "ridge", "alpha": 1.0}, {"model": "ridge", "alpha": 3.0}
    changed = trial(
        number=1, config=last, schedule=json.dumps([[0, first], [2, last]]), lineage=json.dumps([{"donor": 0}])
    )
    plain = trial(number=0, config={"model": "ridge", "alpha": 5.0}, schedule=None, lineage=None)
    found = best_entries([plain, changed], 2)
    assert [entry["config"] for entry in found] == [first, plain.config]
    assert best_entries([changed, trial(config=first, schedule=None, lineage=None)], 2) == found[:1]
    fixed = FixedConfiguration((FixedMember.of(changed), FixedMember.of(plain)))
    assert known_entries({"acme": fixed}) == found


def test_entries_are_for_everybody_or_for_one_customer() -> None:
    entries = [
        WarmStart(config={"x": 1}),
        WarmStart(config={"x": 2}, customer="a"),
        WarmStart(config={"n": 3}, score=1),
    ]
    assert of_customer(entries, "b") == (entries[0], entries[2])
    own = of_customer(entries, "a")
    assert points_to_evaluate(SPACE, entries=own) == [
        {"x": 0.0, "n": 1},
        {"x": 1.0, "n": 1},
        {"x": 2.0, "n": 1},
    ]
    assert evaluated_points(own) == [({"n": 3}, 1.0)]


def test_mistakes_are_told_before_anything_runs() -> None:
    with pytest.raises(PlanError, match=r"warm_start\.1\.config\.x: 30 is not inside"):
        runner(warm_start=[{"config": {}}, {"config": {"x": 30}}]).plan()
    with pytest.raises(PlanError, match=r"warm_start\.0\.config\.y"):
        runner(warm_start=[{"config": {"y": 1}}]).plan()
    for entry, message in (
        ({"x": 3}, "warm_start.0.config: is missing"),
        ({"config": {}, "scor": 3}, "warm_start.0.scor: unknown key. Did you mean 'score'?"),
        ({"config": {}, "score": float("nan")}, "warm_start.0.score: must be a finite number"),
    ):
        with pytest.raises(DefinitionError) as caught:
            define({"data": "x", "target": "y", "warm_start": [entry]})
        assert message in str(caught.value)
    notes = runner(trials=2, algorithm="optuna", warm_start=[{"config": {"x": 1}}, {"config": {"x": 2}}]).plan().notes
    assert any("all 2 trials of a study come from warm_start," in str(note) for note in notes)


def test_a_default_that_the_constraints_refuse_is_told_before_anything_runs() -> None:
    space = SearchSpace([Float("x", 0, 1)], constraints=[lambda config: config["x"] > 0.7])
    with pytest.raises(PlanError, match=r"search_space: default: the constraints do not allow .* give the parameters"):
        runner(search_space=space).plan()


def test_constraints_that_refuse_practically_everything_are_told_before_anything_runs() -> None:
    space = SearchSpace([Float("x", 0, 1), Float("y", 0, 1)], constraints=[lambda config: config["x"] == 0.5])
    for algorithm in ("random", "optuna", "bohb"):
        with pytest.raises(PlanError, match="the constraints refused 2000 random configurations in a row; loosen them"):
            runner(search_space=space, algorithm=algorithm).plan()
    assert runner(search_space=space, algorithm={"name": "grid", "levels": 3}).plan()  # x has 0.5 among its levels
