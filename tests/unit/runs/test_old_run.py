"""A run directory of version 0.1 is still read; going on with it is refused in one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from paths import FIXTURES

from tuning import RunResult
from tuning.basics.wording import params_text
from tuning.errors import RunError
from tuning.runs.begin import resume_run
from tuning.storage.run_directory import RunDirectory

OLD = FIXTURES / "old-run"
EXPECTED = json.loads((OLD / "expected.json").read_text())


@pytest.fixture
def run(tmp_path: Path) -> RunResult:
    shutil.copytree(OLD / "run-of-version-0.1", tmp_path / "run")
    return RunResult(str(tmp_path / "run"))


def test_the_leaderboard_is_the_one_that_the_old_version_gave(run: RunResult) -> None:
    rows = json.loads(run.leaderboard().to_json(orient="records"))
    for row, before in zip(rows, EXPECTED["leaderboard"], strict=True):
        params = before["params"]
        # That version showed errors as records have them, and gains as differences.
        shown = {
            name: -before[name]
            for name in ("cv_score", "test_score", "baseline_test_score")
            if before.get(name) is not None
        }
        shown |= {"metric": "rmse", "gain": row["gain"], "params": params}
        assert {**{name: row[name] for name in before}, "params": params} == {**before, **shown}
        # That version rounded them, and did not count trees and rounds among them.
        assert set(params.split(", ")) <= set(params_text(json.loads(row["params"] or "{}")).split(", "))
    assert len(run.trials()) == sum(row["trials"] for row in EXPECTED["leaderboard"])


@pytest.mark.parametrize("customer", EXPECTED["predictions"])
def test_models_predict_what_they_predicted(run: RunResult, customer: str) -> None:
    rows = pd.read_csv(OLD / "sales.csv")
    rows = rows[rows["customer"] == customer].head(5)
    assert run.model(customer).predict(rows).tolist() == pytest.approx(EXPECTED["predictions"][customer], abs=1e-12)


def test_going_on_is_refused_and_says_what_to_do(run: RunResult) -> None:
    with pytest.raises(RunError, match=r"written by version 0\.1.*start a new run in another folder"):
        resume_run(RunDirectory(run.directory.root))
