"""Comparisons on the engine: paired studies, resuming, failures, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from comparisons import bowl, fields, run

from tuning import RunResult, TuneRunner
from tuning.compare import Table, comparison_of, replay, tabulate
from tuning.compare.on_data import MOST_TRIALS
from tuning.definition.definition import define
from tuning.errors import DefinitionError, PlanError, RunError
from tuning.notes import ComparisonCode, PlanCode
from tuning.planning.plan import make_plan


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("comparison")
    run(path)
    return path


def test_studies_are_customers_times_algorithms_times_seeds(folder: Path) -> None:
    result = RunResult(str(folder / "run"))
    assert len(result.study_records) == 3 * 3 * 2
    found = comparison_of(result)
    assert found.methods == ("random", "optuna", "random+asha")
    assert found.final.tasks == ("c0", "c1", "c2")
    assert found.seeds == 2
    assert found.final.budget.tolist() == [6, 6, 6]
    assert found.noun == "customer"


def test_studies_are_paired(folder: Path) -> None:
    frame = pd.read_parquet(folder / "run" / "curves.parquet")
    first = frame[frame["trial"] == 1].groupby("task")["score"].nunique()
    assert (first == 1).all(), "every study of a customer starts at the same configuration"
    table = frame.pivot_table(index=["task", "seed", "trial"], columns="method", values="score")
    whole = frame.pivot_table(index=["task", "seed", "trial"], columns="method", values="state", aggfunc="first")
    both = whole["random+asha"] == "finished"
    assert (table["random"] == table["random+asha"])[both].all(), "the same seed draws the same configurations"
    seeds = [table.xs(seed, level="seed")["random"].tolist() for seed in (0, 1)]
    assert seeds[0] != seeds[1]


def test_asha_pays_fewer_steps_and_what_it_stopped_cannot_win(folder: Path) -> None:
    found = comparison_of(str(folder / "run"))
    frame = found.curves.frame
    assert set(frame.loc[frame["method"] == "random", "state"]) == {"finished"}
    spent = frame.groupby(["method", "task", "seed"])["steps"].last().groupby("method").mean()
    assert spent["random"] == 6 * 4
    assert spent["random+asha"] < spent["random"]
    stopped = frame["state"] == "stopped"
    assert stopped.any()
    assert frame.loc[stopped, "loss"].isna().all()


def test_seconds_hold_training_and_sampler(folder: Path) -> None:
    records = RunResult(str(folder / "run")).trial_records
    frame = comparison_of(str(folder / "run")).curves.frame
    own = [r for r in records if r.study == "c1/optuna/1"]
    ours = frame.query("method == 'optuna' and task == 'c1' and seed == 1")
    assert ours["seconds"].iloc[-1] == pytest.approx(sum(r.seconds + r.suggest_seconds for r in own))


def test_the_run_keeps_its_curves_and_its_page(folder: Path) -> None:
    html = (folder / "run" / "comparison.html").read_text(encoding="utf-8")
    assert comparison_of(str(folder / "run")).sentence.split(":")[0] in html
    assert len(pd.read_parquet(folder / "run" / "curves.parquet")) == 3 * 3 * 2 * 6


def test_an_interrupted_comparison_goes_on_and_ends_the_same(folder: Path, tmp_path: Path) -> None:
    calls = 0

    def interrupted(config: dict[str, float], data: pd.DataFrame) -> Iterator[float]:
        nonlocal calls
        calls += 1
        if calls == 40:
            raise KeyboardInterrupt
        yield from bowl(config, data)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, objective=interrupted)
    before = len(RunResult(str(tmp_path / "run")).study_records)
    assert 0 < before < 18
    run(tmp_path, objective=interrupted, resume=True)
    assert calls <= 40 + 18 * 6 - before * 6 + 1
    columns = ["method", "task", "seed", "trial", "score", "steps", "state"]
    one, two = (pd.read_parquet(path / "run" / "curves.parquet")[columns] for path in (folder, tmp_path))
    pd.testing.assert_frame_equal(one, two)


def test_another_comparison_cannot_go_on_in_the_same_folder(folder: Path) -> None:
    with pytest.raises(RunError, match=r"compare: .* there, .* here"):
        run(folder, seeds=3, resume=True)


def test_an_algorithm_that_fails_on_a_customer_is_worst_there_and_it_is_said(tmp_path: Path) -> None:
    def fragile(config: dict[str, float], data: pd.DataFrame) -> Iterator[float]:
        # Only the default configuration has this x, so random search fails nowhere else.
        if data["a"].iloc[0] > 0.2:
            raise ValueError("no luck")
        yield from bowl(config, data)

    found = run(tmp_path, objective=fragile, customers=2, algorithms="random,optuna", seeds=1, trials=3)
    assert found.failures.everywhere == ("c1",)
    assert "Left out, since every algorithm failed there: 'c1'" in found.text()


def test_a_comparison_says_which_algorithms_never_left_their_random_start(tmp_path: Path) -> None:
    found = run(tmp_path, customers=2, algorithms="random,hyperopt,optuna", seeds=1, trials=8)
    said = [note for note in found.notes if note.code is PlanCode.RANDOM_SEARCH]
    assert [(note.subject, note.values["start"], note.values["trials"]) for note in said] == [
        ("hyperopt", 20, 8),
        ("optuna", 10, 8),
    ]


def test_an_algorithm_given_twice_draws_other_numbers(tmp_path: Path) -> None:
    made = define(fields(tmp_path) | {"compare": {"algorithms": "random,optuna,random", "seeds": 2}})
    again = define({**fields(tmp_path), "compare": made.compare.to_dict() if made.compare else None})
    assert make_plan(again).studies == make_plan(made).studies, "the frozen definition gives the same studies"
    seeds = {study.id: study.seed for study in make_plan(made).studies}
    assert seeds["c0/random/0"] == seeds["c0/optuna/0"] != seeds["c0/random#2/0"]
    assert len(set(seeds.values())) == 3 * 2 * 2


def test_a_budget_of_seconds_is_judged_on_seconds(tmp_path: Path) -> None:
    found = run(tmp_path, algorithms="random,optuna", seeds=1, trials=None, seconds=0.05, customers=2)
    assert found.axis == "seconds"
    trials = found.curves.frame.groupby(["method", "task", "seed"])["trial"].max()
    assert trials.between(1, MOST_TRIALS - 1).all(), "time ended every study, not the number of trials"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"algorithms": "random"}, DefinitionError, "two algorithms or more; there is only 'random'"),
        ({"algorithms": None}, DefinitionError, "no algorithms to compare"),
        ({"algorithms": "random,optunna"}, DefinitionError, "optunna"),
        ({"seeds": 0}, DefinitionError, "seeds"),
        ({"baseline": "tpe"}, DefinitionError, "'tpe' is not among the algorithms: random, optuna"),
        ({"seconds": 3.0}, DefinitionError, "trials or seconds, not both"),
        ({"algorithms": "random,{name: grid, levels: 200}"}, PlanError, "40,000 combinations"),
        ({"algorithms": "random,{name: optuna, sampler: cmaes}"}, DefinitionError, "pip install cmaes"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_starts(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hide(monkeypatch, "cmaes")
    with pytest.raises(error, match=message):
        run(tmp_path, **{"algorithms": "random,optuna", **options})
    assert not (tmp_path / "run").exists()


def _hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """As if a package were not installed, which it may be."""
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == package else find(name, *rest))


def test_a_plan_shows_what_a_comparison_runs_and_keeps_customers_together(tmp_path: Path) -> None:
    made = define(
        fields(tmp_path, customers=40) | {"compare": {"algorithms": "random,optuna+asha", "seeds": 3}, "slots": 2}
    )
    plan = make_plan(made)
    assert len(plan.studies) == 40 * 2 * 3
    assert "3 seeds of each of random, optuna+asha per customer" in plan.describe()
    assert sorted(position for batch in plan.batches for position in batch) == list(range(240))
    homes: dict[str, set[int]] = {}
    for number, batch in enumerate(plan.batches):
        for position in batch:
            homes.setdefault(plan.studies[position].customer.id, set()).add(number)
    assert all(len(batches) == 1 for batches in homes.values()), "a customer is loaded by one worker"
    sizes = [len(batch) for batch in plan.batches]
    assert len(sizes) == 16
    assert max(sizes) <= 18


def test_few_customers_are_divided_so_that_all_slots_work(tmp_path: Path) -> None:
    made = define(fields(tmp_path, customers=1) | {"compare": {"algorithms": "random,optuna", "seeds": 10}, "slots": 4})
    plan = make_plan(made)
    assert sorted(position for batch in plan.batches for position in batch) == list(range(20))
    assert len(plan.batches) == 20


def test_a_grid_is_tabulated_and_searched_again(tmp_path: Path) -> None:
    made = define(fields(tmp_path))
    found = tabulate(made, levels=4, run_dir=str(tmp_path / "grid"), in_process=True, progress=False)
    assert len(found.configs) == 16
    assert found.notes == ()
    scores = found.finals("c1")
    best = max(-((x - 0.3) ** 2) - (y - 0.5) ** 2 - 0.1 / 4 for x in (0, 1 / 3, 2 / 3, 1) for y in (0, 1 / 3, 2 / 3, 1))
    assert scores.max() == pytest.approx(best)
    assert found.max_steps == {"": 4}
    table = Table.read(found.write(tmp_path / "table.parquet"))
    assert table.space == made.search_space
    again = replay(table, "random,optuna+asha", seeds=2, trials=8)
    assert again.groupby(["method", "task", "seed"]).size().eq(8).all()


def test_customers_that_a_grid_has_not_come_to_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter(range(6))  # of the five trials of every customer: the default configuration and a grid of four

    def interrupted(config: dict[str, float], data: pd.DataFrame) -> Iterator[float]:
        if next(left, None) is None:
            raise KeyboardInterrupt
        yield from bowl(config, data)

    made, folder = define(fields(tmp_path, objective=interrupted)), str(tmp_path / "grid")
    with pytest.raises(KeyboardInterrupt):
        tabulate(made, levels=2, run_dir=folder, in_process=True, progress=False)
    monkeypatch.setattr(TuneRunner, "run", lambda *_, **__: RunResult(folder))  # as when its time is spent
    found = tabulate(made, levels=2, run_dir=folder)
    assert found.tasks == ("c0",)
    assert found.notes == (ComparisonCode.GRID_INCOMPLETE(names=["c1", "c2"]),)


def test_a_run_of_another_kind_is_no_comparison(tmp_path: Path) -> None:
    tabulate(define(fields(tmp_path)), levels=2, run_dir=str(tmp_path / "grid"), in_process=True, progress=False)
    with pytest.raises(RunError, match="is not the run of a comparison"):
        comparison_of(str(tmp_path / "grid"))
