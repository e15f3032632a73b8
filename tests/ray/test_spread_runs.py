"""Spread runs under Tune's controller: a killed worker, a quarantine, and models for customers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chaos import hazard, hazards, write_hazards
from spread_workers import SPACE

from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.records.schema import TrialRecord
from tuning.steps import Step


def test_a_killed_worker_costs_the_trial_the_steps_since_its_checkpoint(ray_cluster: None, tmp_path: Path) -> None:
    folder = str(tmp_path)

    def objective(config: dict[str, Any], state: Any) -> Iterator[Step]:
        """Its worker dies once, at step 6; every step leaves a line in a file."""
        for step in range((state or 0) + 1, 10):
            with open(f"{folder}/steps-{config['x']:.6f}", "a") as log:
                log.write(f"{step}\n")
            if step == 6 and not os.path.exists(f"{folder}/died"):
                open(f"{folder}/died", "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            yield Step(step, (config["x"] - 1) ** 2 + 1 / step, get_state=lambda step=step: step)

    runner = TuneRunner(
        objective=objective,
        search_space=SPACE,
        metric="loss",
        mode="min",
        steps=9,
        trials=3,
        algorithm="random",
        scheduler="fifo",
        placement="spread",
        mlflow=False,
        slots=2,
    )
    runner.timing = Timing(checkpoint_s=0.0)
    result = runner.run(str(tmp_path / "run"), progress=False)
    records: list[TrialRecord] = result.trial_records
    assert [[step.step for step in record.steps] for record in records] == [list(range(1, 10))] * 3
    assert sorted(record.attempt for record in records) == [1, 1, 2]
    lost = next(record for record in records if record.attempt == 2)
    run = (tmp_path / f"steps-{lost.config['x']:.6f}").read_text().split()
    assert len(run) < 9 + 5  # 9 steps, and at most the one or two since the last checkpoint again


@pytest.mark.slow
def test_a_trial_that_hangs_is_killed_and_its_study_goes_on(ray_cluster: None, tmp_path: Path) -> None:
    write_hazards(tmp_path / "data", 1, {0: "loop_in_c"})  # it holds the interpreter: nothing in the worker can help
    fields: dict[str, Any] = {"objective": hazard, "algorithm": "random", "placement": "spread", "trials": 4}
    runner = hazards(tmp_path / "data", limits={"trial_seconds": 1.0}, **fields)
    runner.timing = Timing(cold_start_s=4.0)
    result = runner.run(str(tmp_path / "run"), progress=False)
    board = result.leaderboard().set_index("customer")
    assert board.loc["c0000", "status"] == "ok"
    records = result.trial_records
    hung = [record for record in records if record.config["x"] > 0.3]
    assert 0 < len(hung) < len(records) == 4
    assert {(record.state, record.attempt, len(record.steps)) for record in hung} == {("failed", 1, 1)}
    why = "it took longer than limits.trial_seconds: 1, and it reported no step that could end it"
    assert {str(record.reason or "") for record in hung} == {why}


STUCK = """
from sklearn.linear_model import LinearRegression

class Stuck(LinearRegression):
    def fit(self, X, y):
        while len(y) == 50 and y[0] > 1000:  # all rows of one customer, in the last fit only
            pass
        return super().fit(X, y)
"""


@pytest.mark.slow
def test_a_last_fit_that_hangs_costs_its_own_study_only(ray_cluster: None, tmp_path: Path) -> None:
    """Under the limit of a trial, whose fits were quick."""
    (tmp_path / "stuck.py").write_text(STUCK)
    x = np.arange(50.0)
    data = {name: pd.DataFrame({"x": x, "y": x + level}) for name, level in (("a", 5000.0), ("b", 0.0))}
    runner = TuneRunner(data=data, target="y", task="regression", models=[f"{tmp_path}/stuck.py:Stuck"],
                        algorithm="random", trials=1, placement="spread", slots=2, mlflow=False, allow_code=True,
                        limits={"trial_seconds": 1.0, "crashes_before_quarantine": 1})  # fmt: skip
    runner.timing = Timing(cold_start_s=30.0)
    board = runner.run(str(tmp_path / "run"), progress=False).leaderboard().set_index("customer")
    assert dict(board["status"]) == {"a": "quarantined", "b": "ok"}
    assert board.loc["a", "reason"].startswith("the final fits has ended its worker 1 time: a crash, a time limit")


@pytest.mark.slow
def test_customers_spread_over_workers_get_models(ray_cluster: None, tmp_path: Path) -> None:
    from made_up import write_customers

    write_customers(tmp_path / "customers", customers=5)
    result: RunResult = TuneRunner(
        data=str(tmp_path / "customers" / "*.csv"),
        target="churned",
        metric="roc_auc",
        trials=2,
        placement="spread",
        mlflow=False,
        slots=2,
    ).run(str(tmp_path / "run"), progress=False)
    board = result.leaderboard()
    assert list(board["status"]) == ["ok", "ok", "no_model", "no_model", "no_model"]
    assert len(result.trial_records) == 4
    assert board["test_score"][:2].notna().all()
    assert "not utf-8 text" in board.set_index("customer").loc["customer-broken", "reason"]
    again = TuneRunner.resume(str(tmp_path / "run"), progress=False)
    assert len(again.trial_records) == len(result.trial_records)


@pytest.mark.slow
def test_a_spread_study_finds_the_ensemble_that_it_finds_packed(ray_cluster: None, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(120, 3)), columns=["a", "b", "c"])
    frame["y"] = 3 * frame["a"] + np.abs(4 * frame["b"]) + rng.normal(scale=0.3, size=120)
    models = [
        "ridge",
        "knn",
        {"estimator": "extra_trees", "search_space": {"n_estimators": {"type": "int", "low": 10, "high": 20}}},
    ]
    fields: dict[str, Any] = {"data": frame, "target": "y", "models": models, "algorithm": "random", "trials": 5}
    found = []
    for placement in ("packed", "spread"):
        runner = TuneRunner(**fields, scheduler="fifo", placement=placement, mlflow=False, slots=2)
        result = runner.run(str(tmp_path / placement), progress=False, in_process=placement == "packed")
        (study,) = result.study_records
        found.append((study.ensemble, study.ensemble_score, study.test_score))
        assert list(result.directory.list("predictions")) == []
    assert found[0] == found[1]
    assert found[0][0] is not None
