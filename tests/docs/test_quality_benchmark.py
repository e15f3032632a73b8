"""The harness behind every claim about the answer: rows that nobody saw, errors counted right, sets that are there."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from paths import ROOT

from benchmarks.quality import rivals
from benchmarks.quality.__main__ import main
from benchmarks.quality.defaults import linear, of_all
from benchmarks.quality.judgement import Judgement
from benchmarks.quality.rounds import Round, error, rounds
from benchmarks.quality.sets import TARGET, Customer, sets


def test_no_contender_sees_the_rows_that_it_is_judged_on() -> None:
    customers = list(sets()["friedman"]())[:3]
    for one in [one for customer in customers for one in rounds(customer, 2)]:
        assert TARGET not in one.unseen
        assert len(one.given) + len(one.unseen) == len(one.customer.rows)
        assert not set(one.given["x0"]) & set(one.unseen["x0"])


def test_one_model_of_all_rows_knows_the_customer_and_answers_each_in_its_classes() -> None:
    def customer(name: str, *labels: str) -> Customer:
        return Customer("made", name, "classes", pd.DataFrame({"x": 0.0, TARGET: [*labels] * 20}))

    asked = [*rounds(customer("a", "no", "yes"), 1), *rounds(customer("b", "maybe", "no"), 1)]
    found = of_all(partial(linear, scoring="neg_log_loss"), asked).values
    assert [found[one.key].shape for one in asked] == [(8, 2), (8, 2)]
    assert found["made/a/0"][:, 1].min() > 0.4  # 'yes', which 'b' never has
    assert [len(one.given) for one in rounds(customer("a", "no", "yes"), 1, 12)] == [12]
    assert not rounds(customer("a", "no", "yes"), 1, 2)


def test_errors_are_those_of_scikit_learn() -> None:
    numbers = Customer("made", "up", "regression", pd.DataFrame())
    one = Round(numbers, 0, pd.DataFrame({TARGET: [1.0]}), pd.DataFrame(), np.array([0.0, 3.0]))
    assert error(one, np.array([0.0, 1.0])) == pytest.approx(np.sqrt(2))
    classes = Customer("made", "up", "classes", pd.DataFrame())
    two = Round(classes, 0, pd.DataFrame({TARGET: ["no", "yes"]}), pd.DataFrame(), np.array(["yes", "no"]))
    assert error(two, np.array([[0.5, 0.5], [0.75, 0.25]])) == pytest.approx(-(np.log(0.5) + np.log(0.75)) / 2)


def test_wins_ties_and_medians_are_counted_by_customer() -> None:
    ours, theirs = [1.0, 1.0, 1.0, 2.0], [2.0, 1.0005, 4.0, 1.0]
    rows = [
        ("made", str(number), 0, name, value)
        for name, values in {"ours_20": ours, "random_forest": theirs}.items()
        for number, value in enumerate(values)
    ]
    errors = pd.DataFrame(rows, columns=["set", "customer", "repetition", "contender", "error"])
    judged = Judgement(errors, {"ours_20": 1.5, "random_forest": 0.1})
    found = judged.against("ours_20").loc["random_forest"]
    assert (found["better"], found["tie"], found["worse"]) == (2, 1, 1)
    figures = judged.figures("ours_20")
    assert figures["wins_vs_random_forest"] == pytest.approx(2 / 3, abs=1e-4)
    assert figures["mean_rank"] == 1.25
    assert figures["core_s_per_customer"] == 1.5


def test_the_command_ends_with_one_object_and_a_model_beats_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # its contenders are processes of `python -m benchmarks…`
    monkeypatch.delenv(rivals.VARIABLE, raising=False)
    options = ["--sets", "friedman", "--every", "10", "--rows", "60", "--output", "json"]
    options += ["--contenders", "linear,one_linear,nothing,mljar"]
    answer = CliRunner().invoke(main, options)
    assert answer.exit_code == 0, answer.stderr
    figures = json.loads(answer.stdout.splitlines()[-1])
    assert figures["customers"] == 3
    assert figures["mean_ranks"]["linear"] < figures["mean_ranks"]["nothing"]
    assert figures["core_s_per_customer"] > 0
    assert "### friedman: 3 customers" in answer.stderr
    assert set(figures["mean_ranks"]) == {"linear", "one_linear", "nothing"}
    assert f"mljar: left out, {rivals.VARIABLE} names no environment: python -m venv DIR" in answer.stderr
