"""What a trial takes must fit on a machine; Ray would wait without a word."""

from __future__ import annotations

import logging
from pathlib import Path

import pandas as pd
import pytest

from tuning import TuneRunner
from tuning.driver.tuner import check_room
from tuning.errors import PlanError


def test_more_than_a_machine_has_is_refused_before_anything_waits(ray_cluster: None, tmp_path: Path) -> None:
    rows = pd.DataFrame({"x": range(20), "y": [0.5 * x for x in range(20)]})
    runner = TuneRunner(data={"a": rows}, target="y", task="regression", mlflow=False, resources={"gpus": 8})
    with pytest.raises(PlanError, match=r"a trial needs 1 CPU, 8 GPU, but the largest machine has 2 CPU, 0 GPU"):
        runner.run(str(tmp_path / "run"), progress=False)


def test_a_cluster_may_grow(
    ray_cluster: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    check_room([{"cpu": 1}, {"cpu": 2, "memory": 1e6}])
    assert not caplog.records
    monkeypatch.setenv("RAY_ADDRESS", "somewhere:6379")
    with caplog.at_level(logging.WARNING):
        check_room([{"cpu": 1000}])
    assert "waits for a machine to join" in caplog.text
