"""What a plan says of a run before it starts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import SPACE, definition, valley, write_customers
from shown_output import codes_of

from tuning import TuneRunner
from tuning.definition.customer_limits import Limits
from tuning.notes import PlanCode


def lines(runner: TuneRunner) -> dict[str, str]:
    return {line[:11].strip(): line[12:] for line in runner.plan().describe().splitlines()}


@pytest.mark.long
def test_it_says_how_long_a_trial_may_hang(tmp_path: Path) -> None:
    write_customers(tmp_path, 3)
    fields = definition(tmp_path)
    other = ", or 50 times the longest trial before it, where that is longer; limits.trial_seconds sets another"
    assert lines(TuneRunner(**fields))["time limit"] == f"a trial is ended after 10 min without a step{other}"
    set_here = lines(TuneRunner(**fields, limits=Limits(trial_seconds=60)))
    assert set_here["time limit"] == "60 s per trial (limits.trial_seconds)"
    tuned = TuneRunner(objective=valley, search_space=SPACE, metric="loss", mode="min", placement="packed")
    assert lines(tuned)["time limit"] == f"a trial is ended after 60 min without a step{other}"
    spread = lines(TuneRunner(**{**fields, "placement": "spread"}))
    assert spread["time limit"] == f"a trial is ended after 10 min without a step{other}"


def test_it_says_how_many_fits_there_are_at_most(tmp_path: Path) -> None:
    write_customers(tmp_path, 3)
    fields = {**definition(tmp_path), "trials": 4, "split": {"folds": 5}}
    assert lines(TuneRunner(**fields))["trials"] == "12 (4 per study), up to 60 fits"
    assert TuneRunner(**fields).plan().to_dict()["fits"] == 60


@pytest.mark.parametrize("y", ["number", "class"])
@pytest.mark.parametrize("customers", [1, 24])
def test_the_plan_of_clean_rows_has_one_note_which_is_a_guess(y: str, customers: int) -> None:
    x = np.random.default_rng(0).normal(size=(60 * customers, 3))
    rows = pd.DataFrame(x, columns=["a", "b", "c"]).assign(number=x[:, 0], shop=np.arange(len(x)) % customers)
    rows["class"] = np.where(x[:, 0] > 0, "yes", "no")
    keys = {"data": rows.drop(columns={"number": "class", "class": "number"}[y]), "target": y}
    plan = TuneRunner(keys | ({"by": "shop"} if customers > 1 else {"drop": "shop"}), trials=5).plan()
    assert codes_of(plan) == [PlanCode.TASK_GUESSED if y == "number" else PlanCode.BINARY_GUESSED]


def test_the_sentences_of_plans_are_short() -> None:
    assert [code for code in PlanCode if len(code.text.split()) > 25] == []


def test_it_promises_no_cost(tmp_path: Path) -> None:
    write_customers(tmp_path, 3)
    plan = TuneRunner(**definition(tmp_path)).plan()
    assert "core" not in plan.describe()
    assert "core_seconds" not in plan.to_dict()


def test_it_names_customers_whose_rows_are_too_few_where_it_knows_their_number() -> None:
    table = pd.DataFrame({"k": ["a"] * 60 + ["tiny"] * 4 + ["small"] * 5, "x": range(69), "y": range(69)})
    fields = {"data": table, "by": "k", "target": "y", "search_space": "ridge", "task": "regression", "mlflow": False}

    (note,) = TuneRunner(**fields, min_rows=10).plan().notes
    assert note.code is PlanCode.CUSTOMERS_TOO_SMALL
    assert (note.values["customers"], note.values["least"], set(note.values["first"])) == (2, 10, {"tiny", "small"})
    assert TuneRunner(**fields).plan().notes == ()


@pytest.mark.parametrize(("rows", "placement"), [(100, "packed"), (30_000, "spread")])
def test_few_studies_are_spread_where_their_trials_have_many_rows(rows: int, placement: str) -> None:
    frame = pd.DataFrame({"x": range(rows), "y": range(rows)})
    runner = TuneRunner(data=frame, target="y", search_space="ridge", slots=4, mlflow=False)
    assert runner.plan().placement == placement


def test_files_that_hardly_hold_rows_come_first(tmp_path: Path) -> None:
    """They are done at once, so the time that is left is known sooner."""
    write_customers(tmp_path, 30)
    (tmp_path / "tiny.csv").write_text("a,b,c,y\n1,2,3,4\n")
    plan = TuneRunner(**definition(tmp_path)).plan()
    assert [plan.studies[position].id for position in plan.batches[0]] == ["tiny"]
    assert sorted(position for batch in plan.batches for position in batch) == list(range(31))
