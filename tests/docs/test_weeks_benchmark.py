"""The harness behind what a refresh is worth: the same rows for all ways, and losses counted right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.weeks.__main__ import FIELDS, follow
from benchmarks.weeks.judgement import summary
from benchmarks.weeks.rows import DRIFTS, JUMPS, STAYS, WeeklyRows, generated
from benchmarks.weeks.ways import WAYS, WeeklyWay
from tuning.definition.given import definition_of
from tuning.serving.releases import Releases


def test_customers_stay_drift_and_jump_and_are_the_same_every_time() -> None:
    drawn = list(generated(10, weeks=3, rows=5, seed=1))
    assert [each.kind for each in drawn] == [JUMPS, DRIFTS, DRIFTS, *[STAYS] * 7]
    for one, other in zip(drawn, generated(10, weeks=3, rows=5, seed=1), strict=True):
        pd.testing.assert_frame_equal(one.coming[2], other.coming[2])


def ways(tmp_path: Path, *names: str) -> list[WeeklyWay]:
    definition = definition_of(None, {"data": str(tmp_path), "target": "target"})
    return [WAYS[name](name, definition, tmp_path) for name in names]


def test_a_way_is_judged_on_the_same_customers_and_rows_as_the_others(tmp_path: Path) -> None:
    per_week = {"never": [1.0, 1.0], "retrain": [0.5, 1.03], "better": [0.5, 0.5]}
    found = [
        (name, customer, week, scale * loss, rows)
        for name, losses in per_week.items()
        for customer, scale in (("small", 1.0), ("large", 1000.0))
        for week, (loss, rows) in enumerate(zip(losses, (30, 10), strict=True))
    ]
    losses = pd.DataFrame(found, columns=["way", "customer", "week", "loss", "rows"])
    retrain, better, never = summary(losses, ways(tmp_path, "retrain", "better", "never"), weeks_tell=True)
    assert never.loss_vs["retrain"] == pytest.approx((40 / 25.3 - 1,) * 3)  # by rows, and large ones count no more
    assert better.loss_vs["retrain"] == pytest.approx((20 / 25.3 - 1,) * 3)
    assert (retrain.worse_ever, retrain.worse_overall) == (1.0, 0.0)
    assert (better.worse_ever, better.worse_overall) == (0.0, 0.0)
    assert (better.false_promotions, never.false_promotions) == (0, None)


def test_each_way_learns_from_what_has_come_and_the_first_models_stay(tmp_path: Path) -> None:
    """Of customers whose first rows say nothing of what comes, so that a constant serves them first."""
    rng = np.random.default_rng(0)

    def rows(count: int, slope: float) -> pd.DataFrame:
        x = rng.normal(size=count)
        return pd.DataFrame({"x": x, "target": slope * x + rng.normal(0, 0.1, count)})

    weeks = [rows(200, 1.0), rows(50, 1.0)]
    customers = [WeeklyRows(name, JUMPS, rows(40, 0.0), weeks, weeks) for name in ("a", "b")]
    fields = {**FIELDS, "models": ["ridge"], "trials": 1, "ensemble": "none", "portfolio": "none"}
    losses, found = follow(customers, 1, fields, ["retrain", "always", "never"], tmp_path)
    mean = losses.groupby("way")["loss"].mean()
    assert mean["retrain"] < mean["never"] / 4
    assert mean["always"] < mean["never"] / 4
    assert [way.seconds > 0 for way in found[:2]] == [True, True]
    assert [Releases(way.name, tmp_path / "runs").current().number for way in found] == [2, 2, 1]
