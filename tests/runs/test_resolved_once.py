"""Workers read in the plan file what was resolved when the run began."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tuning import RunResult, TuneRunner
from tuning.execution.context import WorkerRun
from tuning.execution.packed import work_shard
from tuning.runs.begin import begin


def test_workers_resolve_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "y"]).to_csv(tmp_path / "rows.csv", index=False)
    data = {"acme": str(tmp_path / "rows.csv"), "beta": {"path": str(tmp_path / "rows.csv"), "search_space": "lasso"}}
    owned = begin(
        TuneRunner(data=data, target="y", search_space="ridge", algorithm="random", trials=3).definition,
        str(tmp_path / "run"),
    )
    owned.lease.release()
    for name in ("space_of", "check_models", "resolve_metric", "agreed_task"):
        monkeypatch.delattr(f"tuning.planning.resolution.{name}")
    for shard in range(len(owned.plan.shards)):
        work_shard(WorkerRun.of(owned), shard, lambda _: None)
    assert RunResult(owned.directory).leaderboard()["status"].tolist() == ["ok", "ok"]
