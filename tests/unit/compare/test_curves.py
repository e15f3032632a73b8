"""The curves table and what is computed along it: regret, ranks, budgets, bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from compare_curves import curves

from tuning.compare import Curves, analyse
from tuning.compare.analysis.anytime import anytime
from tuning.errors import DataError

SMALL = pd.DataFrame(
    {
        "method": ["a"] * 4 + ["b"] * 4,
        "task": "t",
        "seed": [0, 0, 1, 1] * 2,
        "trial": [1, 2] * 4,
        "score": [0.5, 0.9, 0.7, 0.7, 0.2, 0.4, 0.4, 0.3],
        "seconds": [1.0, 2.0, 1.0, 2.0, 2.0, 8.0, 2.0, 8.0],
    }
)
BOUNDS = pd.DataFrame({"task": ["t"], "best": [1.0], "reference": [0.0]})


def test_regret_is_the_mean_over_seeds_of_the_best_so_far() -> None:
    result = anytime(Curves.from_frame(SMALL, "max"), "trials", BOUNDS)
    assert result.regret[:, 0].round(6).tolist() == [[0.4, 0.2], [0.7, 0.6]]
    assert result.mean_rank.tolist() == [[1, 1], [2, 2]]
    assert result.area == pytest.approx([0.3, 0.65])


def test_minimising_the_negative_is_the_same() -> None:
    turned = SMALL.assign(score=-SMALL["score"])
    bounds = BOUNDS.assign(best=-1.0, reference=0.0)
    one = anytime(Curves.from_frame(SMALL, "max"), "trials", BOUNDS)
    two = anytime(Curves.from_frame(turned, "min"), "trials", bounds)
    assert one.regret.tolist() == two.regret.tolist()


def test_seconds_are_matched_to_what_every_method_spent() -> None:
    result = anytime(Curves.from_frame(SMALL, "max"), "seconds", BOUNDS)
    assert result.budget.tolist() == [2.0]
    # After 2 seconds a has had two trials, b one.
    assert result.regret[:, 0, -1].round(6).tolist() == [0.2, 0.7]
    # Before b's first trial ends there is nothing: worst.
    assert result.regret[1, 0, 0] == 1.0


def test_without_bounds_one_is_a_typical_random_configuration() -> None:
    frame = curves({"random": 0.0, "clever": 0.6}, tasks=3, seeds=20)
    result = anytime(Curves.from_frame(frame))
    start = result.seeds[0]
    assert np.median([seeds[:, 0] for seeds in start]) == pytest.approx(1.0, abs=0.25)
    assert result.regret[1, :, -1].max() < 0.2


def test_best_so_far_curves_give_the_same_ranks_as_scores() -> None:
    frame = curves({"random": 0.0, "clever": 0.3})
    best = frame.assign(score=frame.groupby(["method", "task", "seed"])["score"].cummin())
    bounds = pd.DataFrame({"task": [f"c{i}" for i in range(12)], "best": 0.0, "reference": 1.0})
    one, two = (anytime(Curves.from_frame(table), bounds=bounds) for table in (frame, best))
    assert one.regret.tolist() == two.regret.tolist()


def test_equal_scores_are_ties() -> None:
    frame = pd.concat([SMALL[SMALL["method"] == "a"].assign(method=name) for name in "xyz"])
    found = analyse(frame, mode="max")
    assert found.ranks.tolist() == [2, 2, 2]
    assert found.friedman is not None
    assert found.friedman.p == 1
    assert "does not matter" in found.sentence or "cannot tell" in found.sentence


def test_a_stopped_trial_cannot_win() -> None:
    frame = SMALL.assign(state="finished")
    frame.loc[1, "state"] = "stopped"
    result = anytime(Curves.from_frame(frame, "max"), "trials", BOUNDS)
    assert result.regret[0, 0].round(6).tolist() == [0.4, 0.4]


def test_unequal_budgets_are_matched_and_said() -> None:
    frame = curves({"short": 0.2, "long": 0.2}, tasks=6)
    frame = frame[(frame["method"] == "long") | (frame["trial"] <= 8)]
    result = anytime(Curves.from_frame(frame))
    assert result.budget.tolist() == [8.0] * 6
    assert "short has 8, the longest 20" in str(result.notes[0])
    assert "8" in analyse(frame).text()


def test_unequal_budgets_are_refused_on_request() -> None:
    frame = curves({"short": 0.2, "long": 0.2}, tasks=6)
    frame = frame[(frame["method"] == "long") | (frame["trial"] <= 8)]
    with pytest.raises(DataError, match="short has 8, the longest 20"):
        analyse(frame, unequal="refuse")


def test_one_crashed_seed_does_not_cut_everybodys_budget() -> None:
    frame = curves({"a": 0.2, "b": 0.2}, tasks=6)
    cut = (frame["method"] == "a") & (frame["task"] == "c0") & (frame["seed"] == 0) & (frame["trial"] > 3)
    assert anytime(Curves.from_frame(frame[~cut])).budget.tolist() == [20.0] * 6


def test_budgets_may_differ_between_tasks() -> None:
    frame = curves({"a": 0.2, "b": 0.2}, tasks=2)
    frame = frame[(frame["task"] == "c0") | (frame["trial"] <= 10)]
    result = anytime(Curves.from_frame(frame))
    assert result.budget.tolist() == [20.0, 10.0]
    assert not result.notes


def test_order_of_rows_does_not_matter() -> None:
    frame = curves({"a": 0.2, "b": 0.1}, tasks=4)
    mixed = pd.concat([frame[:1], frame[1:].sample(frac=1, random_state=0)])
    one, two = (anytime(Curves.from_frame(table), "seconds").frame().set_index("method") for table in (frame, mixed))
    for name in "ab":
        pd.testing.assert_frame_equal(one.loc[name], two.loc[name])


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_files_give_the_same_curves(tmp_path: Path, suffix: str) -> None:
    frame = curves({"a": 0.2, "b": 0.1}, tasks=2, seeds=2).replace({"task": {"c0": "NA", "c1": "007"}})
    frame.loc[3, "score"] = np.nan
    path = tmp_path / f"curves{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    read = Curves.read(path)
    assert read.tasks == ("NA", "007")
    assert read.axes == ("trials", "steps", "seconds")
    pd.testing.assert_frame_equal(read.frame, Curves.from_frame(frame).frame, check_dtype=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": None}, "no column mode"),
        ({"score": "good"}, "score .* must hold numbers"),
        ({"trial": 0}, "whole numbers from 1"),
        ({"trial": 1.5}, "whole numbers from 1"),
        ({"trial": 1}, "'a', task 't', seed 0: trial 1 appears twice"),
        ({"mode": "up"}, "must be max or min"),
        ({"mode": ["max", "min"] * 4}, "both modes"),
        ({"seconds": -1.0}, "must be 0 or more"),
        ({"seconds": [1.0, 0.5] * 4}, "seconds falls at trial 2"),
        ({"state": "pruned"}, "state is 'pruned'"),
        ({"task": [None, *"tttttt", "t"]}, "without task"),
    ],
)
def test_wrong_tables_are_refused_by_name(change: dict[str, Any], message: str) -> None:
    frame = SMALL.assign(**({"mode": "max"} | change))
    if change.get("mode", "max") is None:
        frame = frame.drop(columns="mode")
    with pytest.raises(DataError, match=message):
        Curves.from_frame(frame)


def test_missing_columns_empty_tables_and_unknown_axes_are_refused() -> None:
    with pytest.raises(DataError, match="no column seed"):
        Curves.from_frame(SMALL.drop(columns="seed"), "max")
    with pytest.raises(DataError, match="no rows"):
        Curves.from_frame(SMALL[:0], "max")
    with pytest.raises(DataError, match="no figures for the axis 'steps'; it has trials, seconds"):
        analyse(SMALL, mode="max", axis="steps")
    with pytest.raises(DataError, match="no figures for task 't'"):
        anytime(Curves.from_frame(SMALL, "max"), "trials", BOUNDS.assign(task="other"))


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        Curves.read(tmp_path / "none.csv")
    with pytest.raises(DataError, match="neither"):
        Curves.read(tmp_path / "curves.xlsx")
