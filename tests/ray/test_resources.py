"""What a trial takes must fit on a machine; Ray would wait without a word."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tuning import TuneRunner
from tuning.driver.room import without_room
from tuning.errors import PlanError


def runner(folder: Path, **fields: Any) -> TuneRunner:
    pd.DataFrame({"x": range(20), "y": [0.5 * x for x in range(20)]}).to_csv(folder / "rows.csv", index=False)
    given = {"target": "y", "task": "regression", "search_space": "ridge", "trials": 2, "mlflow": False, "slots": 2}
    return TuneRunner(**{"data": {"a": str(folder / "rows.csv")}, **given, **fields})


def test_more_than_a_machine_has_is_refused_before_anything_waits(ray_cluster: None, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"a trial needs 1 CPU, 8 GPU, which no machine has; the most is 2 CPU, 0 GPU"):
        runner(tmp_path, resources={"gpus": 8}).run(str(tmp_path / "run"), progress=False)


def test_a_customer_who_asks_for_more_gets_a_reason_and_the_others_a_model(ray_cluster: None, tmp_path: Path) -> None:
    path = str(tmp_path / "rows.csv")
    data = {"a": {"path": path, "resources": {"gpus": 8}}, "b": path, "c": {"path": path, "resources": {"cpus": 2}}}
    board = runner(tmp_path, data=data).run(str(tmp_path / "run"), progress=False).leaderboard()
    assert dict(zip(board["customer"], board["status"], strict=True)) == {"a": "no_model", "b": "ok", "c": "ok"}


def test_a_cluster_may_grow(
    ray_cluster: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    assert without_room(runner(tmp_path, resources={"cpus": 2, "memory_gb": 0.001}).plan()) == {}
    assert not caplog.records
    monkeypatch.setenv("RAY_ADDRESS", "somewhere:6379")
    with caplog.at_level(logging.WARNING):
        assert without_room(runner(tmp_path, resources={"cpus": 1000}).plan()) == {}
    assert "waits for a machine to join" in caplog.text
