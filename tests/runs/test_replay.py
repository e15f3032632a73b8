"""What replays must find: the same start for all, and TPE ahead of random search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from compare_curves import grid

from search_spaces import Float, SearchSpace
from tuning.compare import analyse
from tuning.compare.tabular.replay import Problem, compare_on_table, replay, simulate
from tuning.compare.tabular.table import Table
from tuning.definition.compared_methods import parse_methods


@pytest.fixture(scope="module")
def table() -> Table:
    return Table.from_frame(grid(4), "min")


def test_every_search_begins_with_the_default_configuration(table: Table) -> None:
    found = replay(table, "random,random", seeds=3, trials=3)
    first = found[found["trial"] == 1].groupby("task")["score"].nunique()
    assert (first == 1).all(), "every method and seed starts at the same configuration"


def test_tpe_beats_random_on_tables_and_the_report_says_so(table: Table) -> None:
    # Eight bowls, five seeds: TPE is better on all in every one of 20 runs tried; seeds are fixed.
    found = compare_on_table(Table.from_frame(grid(8), "min"), "random,optuna", seeds=3, trials=30)
    assert found.recommendation.algorithm == "optuna"
    assert found.comparisons[0].verdict == "worse"


def sphere(config: Mapping[str, Any]) -> list[tuple[float, float]]:
    return [(sum(value**2 for value in config.values()), 0.0)]


@pytest.mark.slow
def test_on_the_sphere_multivariate_tpe_beats_random_with_the_right_sign_and_significance() -> None:
    # Optuna's issue 2871: 10-D, [-5, 5], 100 trials of which 10 at random, 10 seeds: random search 27.1 +- 8.2. Its
    # 0.40 is the reporter's own TPE, which no Optuna has: Optuna 5.0 by itself gives 6.9 +- 4.1 over 20 seeds, and
    # here 5.9 against 28.3. Seeds are fixed.
    space = SearchSpace([Float(f"x{i}", -5, 5, default=4.0) for i in range(10)])
    problem = Problem(space=space, evaluate=sphere, mode="min")
    frames = [
        simulate(problem, method, 100, seed).assign(method=method.label, task="sphere", seed=seed)
        for method in parse_methods("random,optuna")
        for seed in range(10)
    ]
    curves = pd.concat(frames)
    best = curves.groupby(["method", "seed"])["score"].min().groupby("method").mean()
    assert best["random"] == pytest.approx(27.1, abs=4 * 8.2 / math.sqrt(10))
    assert best["optuna"] < best["random"] / 4
    found = analyse(curves, mode="min")
    pair = found.pairs.pair("optuna", "random")
    assert pair.verdict == "better"
    assert pair.counts.wins == 10
    assert pair.p == pytest.approx(2 / 2**10), "the smallest p that ten seeds can give"
    assert found.sentence.startswith("On this one task only: use optuna: random is worse on 10 of 10 seeds")
