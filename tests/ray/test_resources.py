"""What a trial takes must fit on a machine; Ray would wait without a word."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from search_spaces import Float, SearchSpace
from tuning import TuneRunner
from tuning.basics.timing import Timing

SPACE = SearchSpace([Float("x", 0, 1, default=0.5)])


def runner(folder: Path, **fields: Any) -> TuneRunner:
    pd.DataFrame({"x": range(20), "y": [0.5 * x for x in range(20)]}).to_csv(folder / "rows.csv", index=False)
    given = {"target": "y", "task": "regression", "search_space": "ridge", "trials": 2, "mlflow": False, "slots": 2}
    return TuneRunner(**{"data": {"a": str(folder / "rows.csv")}, **given, **fields})


@pytest.mark.slow
def test_a_customer_who_asks_for_more_gets_a_reason_and_the_others_a_model(ray_cluster: None, tmp_path: Path) -> None:
    path = str(tmp_path / "rows.csv")
    data = {"a": {"path": path, "resources": {"gpus": 8}}, "b": path, "c": {"path": path, "resources": {"cpus": 2}}}

    def objective(config: dict[str, float], data: pd.DataFrame) -> float:
        return float(config["x"] * data["y"].sum())

    fields = {"target": None, "task": "auto", "metric": "loss", "mode": "min", "slots": 1}
    searched = runner(tmp_path, data=data, objective=objective, search_space=SPACE, **fields)
    searched.timing = Timing(own_room_s=1.0)
    board = searched.run(str(tmp_path / "run"), progress=False).leaderboard()
    assert dict(zip(board["customer"], board["status"], strict=True)) == {"a": "no_model", "b": "ok", "c": "ok"}


def test_where_a_cluster_does_not_grow_that_is_the_reason_and_a_resume_tries_again(
    ray_cluster: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "somewhere:6379")
    made = runner(tmp_path, resources={"cpus": 3}, placement="packed")
    made.timing = Timing(room_s=1.0, attempt_pause_s=0.0)
    (row,) = made.run(str(tmp_path / "run"), progress=False).leaderboard().to_dict("records")
    no_room = "takes 3 CPU, for which the machines that are there have no room"
    assert row["status"] == "no_model"
    assert row["reason"] == f"a worker: it {no_room}, and none has joined them within 1 s; add one, then resume the run"
    assert f"a worker {no_room}: it waits up to 1 s for another one" in caplog.text
    result = TuneRunner.resume(str(tmp_path / "run"), progress=False, in_process=True)  # as if there were a machine
    assert list(result.leaderboard()["status"]) == ["ok"]


@pytest.mark.parametrize("placement", ["packed", "spread"])
def test_a_trial_has_what_one_line_asks_for(placement: str, ray_cluster: None, tmp_path: Path) -> None:
    def look(config: dict[str, float]) -> dict[str, float]:
        """What a trial has of the cluster and of its machine, as figures."""
        import ray
        from threadpoolctl import threadpool_info

        assigned = ray.get_runtime_context().get_assigned_resources()
        return {
            "loss": config["x"],
            "gpu": float(os.environ["CUDA_VISIBLE_DEVICES"] or "nan"),
            "share": assigned.get("GPU", 0.0),
            "fast_disk": assigned.get("fast_disk", 0.0),
            "OMP_NUM_THREADS": float(os.environ["OMP_NUM_THREADS"]),
            "threads": max(library["num_threads"] for library in threadpool_info()),
        }

    needs = {"cpus": 2, "gpus": 0.25, "custom": {"fast_disk": 0.5}}
    fields = {"metric": "loss", "mode": "min", "trials": 1, "mlflow": False, "slots": 2, "placement": placement}
    made = TuneRunner(objective=look, search_space=SPACE, resources=needs, **fields)
    seen = made.run(str(tmp_path / "run"), progress=False).trial_records[0].metrics
    assert dict(seen) == {"gpu": 0, "share": 0.25, "fast_disk": 0.5, "OMP_NUM_THREADS": 2, "threads": 2}
