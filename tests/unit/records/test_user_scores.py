"""Why a trial or a study has ended is said in scores as users write them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from builders import write_customers

from tuning import TuneRunner
from tuning.records.user_scores import user_reason

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
    recorded = [each.reason for each in result.trial_records] + [result.study_records[0].notes or ""]
    assert any(NEGATIVE.search(reason) for reason in recorded)
    customer = result.customer()
    shown = [*customer.trials()["reason"], *customer.notes, *result.leaderboard()["notes"].dropna()]
    assert [reason for reason in shown if NEGATIVE.search(reason)] == []
    pairs = zip(recorded, [*customer.trials()["reason"], "; ".join(customer.notes)], strict=True)
    assert all((" below " in raw) == (" above " in said) for raw, said in pairs)


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("asha: rung 2, score -13.8 below cutoff -12.5", "asha: rung 2, score 13.8 above cutoff 12.5"),
        ("asha: score -inf at step 3 is not a finite number", "asha: score inf at step 3 is not a finite number"),
        ("ValueError: score -3 below zero", "ValueError: score -3 below zero"),
        ("left out: a; study_plateau: nothing better than -1.5e-05 in the last 3 trials; x",
         "left out: a; study_plateau: nothing better than 1.5e-05 in the last 3 trials; x"),
        (None, None),
    ],
)  # fmt: skip
def test_only_what_a_scheduler_or_a_rule_says_is_turned(recorded: str | None, shown: str | None) -> None:
    assert user_reason(recorded, RMSE) == shown
    assert user_reason(recorded, "r2") == recorded
