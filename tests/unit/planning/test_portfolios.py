"""Portfolios: what is learned from tables, where they come from, and what of them a study tries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mlflow_records import trial
from shown_output import codes_of

from search_spaces import Choice, Float, SearchSpace, presets
from search_spaces.yaml_text import dump_yaml
from tuning import TuneRunner
from tuning.definition.options import WarmStart
from tuning.errors import DefinitionError, PlanError
from tuning.models.base import Family
from tuning.models.registry import families
from tuning.notes import PlanCode
from tuning.planning.model_space import parameters_by_model
from tuning.planning.portfolios.learning import Cell, LossTable, learn
from tuning.planning.portfolios.sources import learned, shipped
from tuning.study.warm_start import fitting, points_to_evaluate

SPACE = SearchSpace([Choice("model", ["a", "b"]), Float("x", 0, 1, default=0.5), Float("y", 0, 1, when={"model": "b"})])


def table(seconds: Mapping[str, float] = {}, **losses: float) -> LossTable:  # read only
    return {name: Cell(loss, seconds.get(name, 1.0)) for name, loss in losses.items()}


def frame(rows: int = 60) -> pd.DataFrame:
    x = np.random.default_rng(0).normal(size=(rows, 2))
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x[:, 0] + 0.1 * x[:, 1]})


def runner(**fields: Any) -> TuneRunner:
    given: dict[str, Any] = {"data": {"acme": frame()}, "target": "y", "task": "regression", "mlflow": False}
    return TuneRunner(**{**given, **fields})


def test_each_next_configuration_is_the_one_that_leaves_the_least_regret() -> None:
    """By hand. Regrets, from 0 for a table's best to 1 for its middle and worse:

    first table: median 3, best 1: a 0, b 1/2, c 1, d 1, e 1; second: a 1, b 1/2, c 0, d 1, e 1; third: as the first.
    Alone, a leaves 1/3, b 1/2, c 2/3. After a, c takes the 1/3 that is left, and b would take half of that.
    """
    first, second = table(a=1, b=2, c=3, d=4, e=5), table(a=3, b=2, c=1, d=4, e=5)
    third = table(a=10, b=20, c=30, d=40, e=50)  # in another unit
    assert learn([first, second, third], 5) == ["a", "c"]  # no further one reduces anything
    assert learn([first, second, third], 1) == ["a"]
    assert learn([third, second, first], 5) == ["a", "c"]


def test_a_dear_configuration_comes_later_but_not_first() -> None:
    """After a, both b and c take all that is left of one of three tables; c costs a quarter."""
    tables = [table({"b": 4.0, "c": 1.0}, a=1, b=9, c=9, d=9, e=9), table({"b": 4.0}, a=9, b=1, c=9, d=9, e=9)]
    tables += [table({"b": 4.0}, a=9, b=9, c=1, d=9, e=9), tables[0]]
    assert learn(tables, 3) == ["a", "c", "b"]
    assert learn(tables, 3) == ["a", "c", "b"]
    dear = [
        {name: cell._replace(seconds=100.0 if name == "a" else 1.0) for name, cell in each.items()} for each in tables
    ]
    assert learn(dear, 1) == ["a"]


def test_what_failed_or_is_missing_counts_as_worst_and_one_odd_table_spoils_nothing() -> None:
    tables = [table(a=1, b=2, c=8, d=9), table(a=1, b=2, c=8, d=9)]
    odd = table(a=float("nan"), c=-1e300, d=1e300, b=float("inf"))
    same = table(a=1, b=1, c=1, d=1)
    assert learn([*tables, odd, same, {}], 4) == ["a", "c"]
    assert learn([table(b=1, c=2), table(b=1, c=2), table(a=0, c=2)], 1) == ["b"]  # a is missing from two of three
    assert learn([], 3) == learn([{}, same], 3) == []


def test_records_become_tables_by_customer_in_the_direction_of_their_metric() -> None:
    def records(mode: str) -> list[Any]:
        scores = {"acme": {"a": 0.9, "b": 0.5, "c": 0.1}, "beta": {"a": 0.8, "b": 0.7, "c": 0.1}}
        sign = 1.0 if mode == "max" else -1.0
        return [
            replace(trial(who, number), config={"model": name}, score=sign * score, mode=mode)
            for who, table in scores.items()
            for number, (name, score) in enumerate(table.items())
        ]

    assert learned(records("max")) == learned(records("min")) == ({"model": "a"},)
    failed = [replace(record, state="failed", score=None) for record in records("max")]
    assert learned(failed) == ()


@pytest.mark.parametrize("task", presets.TASKS)
def test_every_shipped_configuration_is_complete_and_inside_the_preset(task: str) -> None:
    name = "tabular-regression" if task == "regression" else "tabular-classification"
    space = presets.load(name, task, optional=presets.families(task))
    configurations = [config for config in shipped(task) if config["model"] in presets.families(task)]
    assert fitting(configurations, space) == configurations
    assert len({config["model"] for config in configurations}) >= 6
    assert len(configurations) >= 10
    assert {parameter.name for config in configurations for parameter in space.existing(config).values()}


def test_who_lacks_the_optional_families_begins_with_as_many_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("catboost", "lightgbm"):
        monkeypatch.setattr(type(families()[name]), "missing", lambda _: "not here")
    shipped.cache_clear()
    try:
        for task in presets.TASKS:
            found = [config["model"] for config in shipped(task)]
            assert len(found) == 12
            assert not {"catboost", "lightgbm"} & {*found}
    finally:
        monkeypatch.undo()
        shipped.cache_clear()


def test_a_study_begins_with_the_baseline_then_with_what_its_user_named_then_with_the_rest() -> None:
    portfolio = [{"model": "c"}, {"model": "b", "x": 0.1}, {"model": "a", "x": 2.0}, {"model": "a", "x": 0.3, "z": 1}]
    portfolio += [{"model": "a", "x": 0.7}, {"model": "a", "x": 0.9}]
    named = [WarmStart(config={"x": 0.2}), WarmStart(config={"x": 0.7}), WarmStart(config={"x": 0.0}, score=1.0)]
    b = {"model": "b", "x": 0.1, "y": 0.5}
    tried = points_to_evaluate(SPACE, portfolio, named)
    assert tried == [b, *({"model": "a", "x": x} for x in (0.2, 0.7, 0.9))]
    nothing = points_to_evaluate(SPACE, portfolio[:1])
    assert nothing == [SPACE.default()]


def test_a_constraint_leaves_configurations_out() -> None:
    space = SearchSpace([Float("x", 0, 1, default=0.1)], constraints=[lambda config: config["x"] < 0.5])
    assert points_to_evaluate(space, [{"x": 0.8}, {"x": 0.4}]) == [{"x": 0.4}]


def test_the_plan_says_what_studies_begin_with_and_keeps_it() -> None:
    plan = runner().plan()
    number, baseline = len(plan.portfolio), plan.portfolio[0]["model"]
    assert number >= 8
    assert f"portfolio   {number} configurations (shipped); the baseline is {baseline}" in plan.describe()
    assert plan.to_dict()["portfolio"] == len(plan.portfolio)
    assert type(plan.spec).from_dict(plan.spec.to_dict(), plan.spec.definition) == plan.spec
    assert codes_of(runner(trials=5).plan()) == []
    assert codes_of(runner(trials=5, algorithm="optuna").plan()) == [PlanCode.ALL_KNOWN]  # nothing is random
    only = runner(models=["ridge", "knn"]).plan()
    assert {config["model"] for config in only.portfolio} == {"ridge", "knn"}


@pytest.mark.long
def test_there_is_no_portfolio_where_nothing_or_searchers_are_compared_unless_it_is_asked_for() -> None:
    compared = {"compare": {"algorithms": ["random", "optuna"], "seeds": 1}}
    assert runner(**compared).plan().portfolio == []
    assert runner(**compared, portfolio="shipped").plan().portfolio != []
    for none in ("none", None):
        plan = runner(portfolio=none).plan()
        assert plan.portfolio == []
        assert "portfolio   none; the baseline is the default configuration" in plan.describe()
    space = SearchSpace([Float("x", 0, 1)])
    tuned: dict[str, Any] = {"objective": lambda config: config["x"], "search_space": space, "mlflow": False}
    assert TuneRunner(**tuned).plan().portfolio == []
    assert TuneRunner(**tuned, portfolio=[{"x": 0.25}]).plan().portfolio == [{"x": 0.25}]


@pytest.mark.parametrize("form", ["list", "mapping"])
def test_a_file_gives_configurations_and_says_which_are_left_out(form: str, tmp_path: Path) -> None:
    configs = [{"model": "ridge", "alpha": 3.0}, {"model": "ridge", "alpha": 1e9}, {"model": "knn"}]
    (tmp_path / "mine.yaml").write_text(dump_yaml(configs if form == "list" else {"configurations": configs}))
    plan = runner(portfolio=tmp_path / "mine.yaml").plan()
    assert [config["model"] for config in plan.portfolio] == ["ridge", "knn"]
    assert plan.portfolio[1] == {"model": "knn", "n_neighbors": 5, "weights": "uniform", "p": 2}
    (note,) = plan.notes
    assert note.code is PlanCode.PORTFOLIO_LEFT_OUT
    assert (note.values["left_out"], note.values["example"]) == (1, '{"model": "ridge", "alpha": 1000000000.0}')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{a: 1}", "holds None; a list of configurations"),
        ("[]", r"holds \[\]; a list of configurations"),
        ("[ridge]", r"holds \['ridge'\]; a list"),
        ("[{model: ridge", "cannot be read"),
        (
            "[{model: rigde}]",
            r"none of its 1 configuration is in the search space, such as .*rigde.*shipped or none\.",
        ),
    ],
)
def test_a_file_that_gives_none_is_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(content)
    with pytest.raises(PlanError, match=f"portfolio: .*{message}"):
        runner(portfolio=str(tmp_path / "mine.yaml")).plan()


def test_what_is_no_portfolio_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"'shiped' is neither shipped nor none, nor a file or a run .* Did you"):
        runner(portfolio="shiped").plan()
    with pytest.raises(PlanError, match="nor a file or a run directory"):
        runner(portfolio=str(tmp_path)).plan()
    for wrong in (3, [], ["ridge"], " "):
        with pytest.raises(DefinitionError, match="is no portfolio; shipped, none, a file, a run directory or a list"):
            runner(portfolio=wrong)


def test_a_family_whose_package_is_missing_is_in_no_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a machine without LightGBM would refuse what nobody asked for."""
    optional = {name for name, family in families().items() if family.requires}
    assert optional & {*parameters_by_model(runner().plan().spec.space)} == optional
    monkeypatch.setattr(Family, "missing", lambda self: f"{self.requires} is missing" if self.requires else "")
    plan = runner().plan()
    assert not optional & {*parameters_by_model(plan.spec.space)}
    assert not optional & {config["model"] for config in plan.portfolio}


@pytest.mark.long
def test_a_run_is_learned_from_and_a_resume_keeps_what_was_learned(tmp_path: Path) -> None:
    given = {"data": {"acme": frame(), "beta": frame(50)}, "models": ["ridge", "knn"], "scheduler": "fifo"}
    quick: dict[str, Any] = {"progress": False, "in_process": True}
    runner(**given, trials=4).run(tmp_path / "first", **quick)
    second = runner(**given, portfolio=tmp_path / "first", trials=3)
    portfolio = second.plan().portfolio
    assert portfolio
    result = second.run(tmp_path / "second", **quick)
    begun = result.trials().query("trial == 0")
    assert set(begun["family"]) == {portfolio[0]["model"]} == set(result.leaderboard()["baseline"])
    (tmp_path / "first").rename(tmp_path / "gone")
    more = TuneRunner.resume(tmp_path / "second", trials=5, **quick)
    columns = ["study", "trial", *(name for name in result.trials() if name.startswith("config."))]
    before, after = result.trials()[columns], more.trials().query("trial < 3")[columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(before, after, check_dtype=False)
    runner(data={"acme": frame(3)}, models=["ridge"]).run(tmp_path / "empty", **quick)
    with pytest.raises(PlanError, match="has no customer with two finished trials"):
        runner(portfolio=tmp_path / "empty").plan()
