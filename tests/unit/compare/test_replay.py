"""Replay: complete tables, searches in simulated time, and what random search must give on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from compare_curves import grid

from search_spaces import Choice, Float, Int, SearchSpace
from tuning.compare import analyse
from tuning.compare.tabular.replay import Problem, replay, simulate
from tuning.compare.tabular.table import Table
from tuning.data.customers import Customer
from tuning.definition.compared_methods import Method, parse_method, parse_methods
from tuning.definition.options import Resources
from tuning.errors import DataError, PlanError
from tuning.steps import Step
from tuning.study.build import PlannedStudy
from tuning.study.recorded_study import RecordedStudy
from tuning.study.study import Study, StudyTraining
from tuning.study.trial import TrialShape


@pytest.fixture(scope="module")
def table() -> Table:
    return Table.from_frame(grid(4), "min")


def test_seconds_are_recorded_ones_plus_the_samplers(table: Table) -> None:
    found = replay(table, "random,optuna", seeds=2, trials=20)
    last = found.groupby(["method", "task", "seed"])["seconds"].last()
    assert (last > 20 * 0.1).all()
    assert (found.groupby(["method", "task", "seed"])["seconds"].diff().dropna() > 0.1 - 1e-9).all()


def test_the_same_seed_gives_the_same_curves(table: Table) -> None:
    columns = ["method", "task", "seed", "trial", "score", "steps", "state"]
    one, two, other = (replay(table, "random,optuna", seeds=1, trials=15, seed=seed)[columns] for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(one, two)
    assert not one["score"].equals(other["score"])


def test_a_budget_of_simulated_seconds_ends_a_search() -> None:
    # Each evaluation took 1,000 seconds, so that the sampler's own time does not matter.
    table = Table.from_frame(grid(2).assign(seconds=1000.0), "min")
    found = replay(table, "random,random", seeds=1, seconds=9500)
    assert found.groupby(["method", "task"])["trial"].max().unique().tolist() == [10]


def test_a_scheduler_stops_trials_and_saves_steps() -> None:
    table = Table.from_frame(grid(tasks=3, steps=9), "min")
    found = replay(table, "random,random+asha", seeds=2, trials=30)
    steps = found.groupby(["method", "task", "seed"])["steps"].last().groupby("method").mean()
    assert steps["random"] == 30 * 9
    assert steps["random+asha"] < 0.7 * steps["random"]
    assert (found.loc[found["method"] == "random", "state"] == "finished").all()
    assert "stopped" in set(found.loc[found["method"] == "random+asha", "state"])


@pytest.mark.parametrize("scheduler", ["fifo", "asha", "median", "hyperband"])
def test_a_run_and_its_replay_have_the_same_curve(scheduler: str) -> None:
    """Of a scheduler that pauses trials, too: when one ends, the others have spent steps as well."""
    space = SearchSpace([Float("x", 0.0, 1.0, default=0.3)])
    method = parse_method(f"random+{scheduler}")

    def steps(config: Any) -> Iterator[tuple[float, float]]:
        return ((-((config["x"] - 0.6) ** 2) - 0.1 / step, 1000.0) for step in range(1, 10))

    def start(config: Any, _seed: int, _state: object) -> Iterator[Step]:
        return (Step(number, score, seconds=spent) for number, (score, spent) in enumerate(steps(config), 1))

    shape = TrialShape(9, progress=True)
    problem = Problem(space, steps, "max", lambda _: 9, lambda _: "objective", lambda _: shape)
    replayed = simulate(problem, method, n_trials=20, seed=3)
    study = Study("c", Customer("c"), method.algorithm, method.scheduler, 3, space, 20, Resources())
    planned = PlannedStudy("run", study, "m", "max")
    records = sorted(RecordedStudy(planned, StudyTraining(start, lambda _: shape)), key=lambda r: r.told)
    assert [record.score for record in records] == replayed["score"].tolist()
    assert [record.state for record in records] == replayed["state"].tolist()
    assert [record.spent_steps for record in records] == replayed["steps"].tolist()
    # Beside a thousand seconds per step the searcher's own are nothing.
    assert [round((record.spent_seconds or 0) / 1000) for record in records] == replayed["steps"].tolist()
    assert (replayed["seconds"] / 1000).round().tolist() == replayed["steps"].tolist()


def test_a_table_survives_its_file(table: Table, tmp_path: Path) -> None:
    again = Table.read(table.write(tmp_path / "table.parquet"))
    assert again.levels.grid == table.levels.grid
    assert again.space == table.space
    assert all(again.finals(task).tolist() == table.finals(task).tolist() for task in table.tasks)
    grid(2).to_csv(tmp_path / "table.csv", index=False)
    assert Table.read(tmp_path / "table.csv", "min").tasks == ("t0", "t1")


CONDITIONAL = SearchSpace(
    [
        Choice("model", ["ridge", "tree"]),
        Float("alpha", 0.1, 10.0, log=True, default=1.0, when={"model": "ridge"}),
        Int("depth", 1, 9, default=3, when={"model": "tree"}),
        Choice("features", [None, "sqrt", 0.5], when={"model": "tree"}),
    ]
)


def conditional_frame(tasks: int = 2) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    configs = list(CONDITIONAL.grid(3))
    rows = [(f"t{t}", config, rng.random()) for t in range(tasks) for config in configs]
    frame = pd.DataFrame(rows, columns=["task", "config", "score"])
    return frame.assign(config=frame["config"].map(json.dumps), mode="max")


@pytest.mark.long
def test_a_conditional_space_is_searched_on_its_grid(tmp_path: Path) -> None:
    table = Table.from_frame(conditional_frame(), space=CONDITIONAL)
    assert len(table.configs) == 3 + 3 * 3
    again = Table.read(table.write(tmp_path / "table.parquet"))
    assert again.space == CONDITIONAL
    found = replay(again, "random,optuna", seeds=40, trials=8)
    drawn = found[(found["method"] == "random") & (found["trial"] > 1)]
    assert set(drawn["score"]) <= {score for task in again.tasks for score in again.finals(task)}


def test_replicates_belong_to_seeds() -> None:
    frame = pd.concat([grid(2).assign(replicate=number, score=lambda f, n=number: f["score"] + n) for number in (0, 1)])
    found = replay(Table.from_frame(frame, "min"), "random,random", seeds=3, trials=5)
    first = found[found["trial"] == 1].groupby("seed")["score"].mean()
    assert first[1] == pytest.approx(first[0] + 1)
    assert first[2] == pytest.approx(first[0])


def test_failed_configurations_are_failed_trials() -> None:
    frame = grid(2)
    frame.loc[frame["param.kind"] == "p", "score"] = np.nan
    found = replay(Table.from_frame(frame, "min"), "random,random", seeds=2, trials=20)
    assert set(found["state"]) == {"finished", "failed"}
    assert found.loc[found["state"] == "failed", "score"].isna().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[1:], "Task 't0': the table is not complete, 1 of 240 configurations are missing"),
        (lambda f: pd.concat([f, f[:1]]), "appear twice"),
        (lambda f: f.assign(step=2), "steps must count 1, 2, 3"),
        (lambda f: f.drop(columns="score"), "no column score"),
        (lambda f: f.drop(columns=["param.x", "param.y", "param.kind"]), "no column config"),
        (lambda f: f[:0], "no rows"),
        (lambda f: f[f["param.kind"].eq("p") | (f["param.x"] > 0.5)], "a complete grid of its levels has 240"),
        (lambda f: f.assign(**{"param.x": f["param.x"].where(f["param.kind"] == "p")}), "exists in some"),
        (lambda f: f.assign(mode="up"), "either max or min"),
        (lambda f: f.assign(config="{x: 1}"), "must hold JSON"),
    ],
)
def test_wrong_tables_are_refused_by_name(change: Any, message: str) -> None:
    frame = change(grid(2))
    with pytest.raises(DataError, match=message):
        Table.from_frame(frame, None if "mode" in frame else "min")


@pytest.mark.parametrize(
    ("algorithms", "message"),
    [
        ("random", "two algorithms or more; there is only 'random'"),
        ("", "there is none"),
        ("random,optunna", "Algorithm 'optunna': .*optuna"),
        ("random,optuna+ash", "Algorithm 'optuna\\+ash': .*asha"),
        ("random,{name: optuna, samplr: gp}", "samplr"),
        ("random,[1]", "neither a name nor a mapping"),
        ("random,{name: optuna", "cannot be read"),
        ([{"name": "optuna", "label": "x"}, {"name": "random", "label": "x"}], "Two different .* labelled 'x'"),
    ],
)
def test_wrong_algorithms_are_refused_by_name(algorithms: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        parse_methods(algorithms)


def test_algorithms_are_labelled_and_repeated_ones_become_twins() -> None:
    methods = parse_methods("random, random, optuna+asha, {name: optuna, profile: v4}, {name: optuna, label: mine}")
    assert [method.label for method in methods] == [
        "random",
        "random#2",
        "optuna+asha",
        "optuna(profile=v4)",
        "mine",
    ]
    assert parse_methods([method.to_dict() for method in methods]) == methods


def test_a_scheduler_that_changes_configurations_cannot_be_replayed(table: Table) -> None:
    with pytest.raises(PlanError, match="pbt changes configurations"):
        replay(table, "random,random+pbt", seeds=1, trials=8)


def test_budgets_below_one_are_refused(table: Table) -> None:
    with pytest.raises(PlanError, match="above 0"):
        replay(table, "random,optuna", seeds=0)


def test_a_searcher_that_raises_ends_its_search_and_not_the_others(table: Table) -> None:
    class Broken:
        name = "broken"

        def build(self, space: Any, **options: Any) -> Any:
            return self

        def suggest(self, trial_id: str) -> dict[str, Any]:
            raise RuntimeError("no more ideas")

    random = parse_method("random")
    curves = replay(table, [random, Method("broken", Broken(), random.scheduler)], seeds=2, trials=5)
    found = analyse(curves)
    assert found.failures.tasks["broken"] == table.tasks
    assert found.best == "random"
    assert f"broken failed on 4 of 4 tasks and counts as worst there: {', '.join(map(repr, table.tasks))}." in map(
        str, found.notes
    )
