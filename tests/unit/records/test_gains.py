"""Scores are recorded as users read them, and gains are comparable whatever the size of customers' targets."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from builders import write_customers
from paths import ROOT
from sklearn.metrics import get_scorer_names

from tuning import TuneRunner
from tuning.basics.wording import gain_text
from tuning.evaluation.metrics import resolve_metric
from tuning.notes import texts
from tuning.records.gains import ERRORS, gain_over, in_unit, is_error


@pytest.mark.parametrize(
    ("score", "other", "metric", "mode", "gain"),
    [
        (3.0, 4.0, "rmse", "min", 25.0),
        (3000.0, 4000.0, "rmse", "min", 25.0),
        (6.0, 4.0, "rmse", "min", -50.0),
        (0.0, 0.0, "mae", "min", 0.0),
        (1.0, 0.0, "mae", "min", -math.inf),
        (1.0, math.inf, "mae", "min", math.inf - math.inf),
        (0.9, 0.5, "r2", "max", 0.4),
        (0.5, 0.9, "costs.py:cost", "min", 0.4),
    ],
)
def test_of_an_error_a_gain_is_in_percent_of_the_other_ones(
    score: float, other: float, metric: str, mode: str, gain: float
) -> None:
    found = gain_over(other, score, metric, mode)
    assert found == (None if math.isnan(gain) else pytest.approx(gain))
    assert found is None or math.copysign(1, found) == math.copysign(1, gain), "never -0.0"


def test_a_gain_and_its_error_are_in_one_unit() -> None:
    assert (gain_over(4.0, 3.0, "mae", "min"), in_unit(0.5, 4.0, "mae")) == (25.0, 12.5)
    assert in_unit(0.5, 4.0, "r2") == 0.5


@pytest.mark.parametrize(
    ("gain", "in_percent", "shown"),
    [
        (12.34, True, "12.3 %"),
        (-0.0, True, "0 %"),
        (-1234.56, True, "-1235 %"),
        (0.02, False, "0.02"),  # of a score
        (-math.inf, True, "-inf %"),  # of a baseline without an error
        (-0.0, False, "0"),
        (None, True, ""),
    ],
)
def test_a_gain_over_an_error_is_shown_in_percent(gain: float | None, in_percent: bool, shown: str) -> None:
    assert gain_text(gain, in_percent) == shown


def test_every_error_of_scikit_learn_has_a_name_and_is_taken_by_both() -> None:
    assert [name for name in get_scorer_names() if name.startswith("neg_") and name not in ERRORS.values()] == []
    for name in ("rmse", "neg_root_mean_squared_error", "root_mean_squared_error"):
        assert resolve_metric(name, "regression") == "rmse"
    assert [name for name in ("costs.py:cost", "loss", "roc_auc", "r2", "accuracy") if is_error(name)] == []


def test_the_sign_of_a_score_is_turned_in_three_files() -> None:
    turned = re.compile(r"1\.0 if [^\n]*mode|mode == \"m(ax|in)\" else -|0\.0 - score|return -score|else -score")
    files = [path for top in ("tuning", "schedulers", "search_spaces") for path in (ROOT / top).rglob("*.py")]
    assert sorted(str(path.relative_to(ROOT)) for path in files if turned.search(path.read_text(encoding="utf-8"))) == [
        "schedulers/direction.py",
        "search_spaces/direction.py",
        "tuning/evaluation/metrics.py",
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"scheduler": "asha"},
        {"scheduler": {"name": "median", "min_samples_required": 2}},
        {"scheduler": "hyperband"},
        {"scheduler": "fifo", "stop": {"target": 1e6}},
        {"scheduler": "fifo", "stop": {"trial_plateau": {"steps": 2, "min_delta": 10}, "study_plateau": 3}},
    ],
    ids=str,
)
def test_records_hold_scores_as_users_read_them(fields: dict[str, Any], tmp_path: Path) -> None:
    write_customers(tmp_path, 1)
    given = {"data": str(tmp_path / "*.csv"), "target": "y", "task": "regression", "mlflow": False, "report": False}
    usual = {
        "algorithm": "random",
        "search_space": "xgboost",
        "portfolio": "none",
        "trials": 10,
        "metric": "neg_mean_absolute_error",
    }
    result = TuneRunner({**given, **usual, **fields}).run(str(tmp_path / "run"), progress=False, in_process=True)
    (study,), trials = result.study_records, result.trial_records
    assert {(each.metric, each.mode) for each in (study, *trials)} == {("mae", "min")}
    full = [each.score for each in trials if each.state == "finished" and each.score is not None]
    assert 0 < min(full) == study.cv_score
    assert min(step.score for each in trials for step in each.steps) > 0
    assert result.leaderboard()["cv_score"].tolist() == [study.cv_score]
    said = texts(filter(None, [*(each.reason for each in trials), *study.notes]))
    assert said
    assert " -" not in said
