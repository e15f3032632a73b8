"""Why a trial or a study has ended is said in scores as users write them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from builders import write_customers

from tuning import TuneRunner
from tuning.notes import EndCode, texts
from tuning.records.user_scores import user_note

RMSE = "neg_root_mean_squared_error"
NEGATIVE = re.compile(r" -[0-9]")


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
def test_no_reason_of_a_scheduler_or_a_rule_says_a_negative_error(fields: dict[str, Any], tmp_path: Path) -> None:
    write_customers(tmp_path, 1)
    given = {"data": str(tmp_path / "*.csv"), "target": "y", "task": "regression", "metric": "rmse", "mlflow": False}
    usual = {"algorithm": "random", "search_space": "xgboost", "portfolio": "none", "trials": 10, "report": False}
    result = TuneRunner({**given, **usual, **fields}).run(str(tmp_path / "run"), progress=False, in_process=True)
    recorded = texts(filter(None, [*(each.reason for each in result.trial_records), *result.study_records[0].notes]))
    assert NEGATIVE.search(recorded)
    customer = result.customer()
    shown = [*customer.trials()["reason"], *map(str, customer.notes), *result.leaderboard()["notes"].dropna()]
    assert [reason for reason in shown if NEGATIVE.search(reason)] == []


def test_only_what_a_scheduler_or_a_rule_says_is_turned() -> None:
    stopped = EndCode.RUNG_CUTOFF("asha", rung=2, score=-13.8, cutoff=-12.5)
    assert str(user_note(stopped, RMSE)) == "asha: rung 2, score 13.8 is worse than the cutoff 12.5"
    for other in (EndCode.RAISED(error="ValueError: score -3 below zero"), None):
        assert user_note(other, RMSE) == other
    assert user_note(stopped, "r2") == stopped
