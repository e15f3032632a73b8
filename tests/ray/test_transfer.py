"""Customers that learn from others wait for them on any worker, and find the same as in one process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tuning import RunResult, TuneRunner
from tuning.execution.transfer import FILE
from tuning.planning import transfer
from tuning.study.study import FOLLOWER, PILOT


def customers(count: int) -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(24, 3)) for _ in range(count)]
    return {f"c{n:03d}": pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x.sum(axis=1)}) for n, x in enumerate(values)}


def tried(result: RunResult) -> list[tuple[str, int, float | None, str]]:
    return sorted((each.study, each.trial, each.score, str(each.config)) for each in result.trial_records)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_cluster")
def test_learning_on_several_workers_finds_what_one_process_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FEWEST", 6), ("FEWEST_PILOTS", 4), ("MOST_PILOTS", 4)):
        monkeypatch.setattr(transfer, name, value)
    runner = TuneRunner(
        data=customers(12), target="y", task="regression", models=["ridge", "knn"], trials=8, slots=2, transfer="on",
        split={"folds": 2}, save_models=False, mlflow=False,
    )  # fmt: skip
    one = runner.run(tmp_path / "one", progress=False, in_process=True)
    several = runner.run(tmp_path / "several", progress=False)
    assert tried(several) == tried(one)
    assert (tmp_path / "several" / FILE).read_text() == (tmp_path / "one" / FILE).read_text()
    ends = {group: [each for each in several.study_records if each.group == group] for group in (PILOT, FOLLOWER)}
    assert len(ends[FOLLOWER]) == 8
    taught = max(record.started + record.seconds for record in ends[PILOT])
    assert min(record.started for record in ends[FOLLOWER]) >= taught
