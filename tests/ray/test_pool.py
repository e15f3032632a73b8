"""The pool is the same wherever studies run, and so is what it makes of their ensembles."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tuning import RunResult, TuneRunner


def rows(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(-2, 2, size=(40, 2)), columns=["a", "b"])
    return frame.assign(y=10.0 ** (seed % 3) * (np.sin(2 * frame["a"]) * frame["b"] + rng.normal(scale=0.2, size=40)))


def found(result: RunResult) -> list[Any]:
    return [
        (each.customer, each.trial, each.ensemble, each.ensemble_score, each.test_score)
        for each in result.study_records
    ]


def test_either_placement_finds_the_ensembles_that_one_process_finds(ray_cluster: None, tmp_path: Path) -> None:
    data: dict[str, Any] = {}
    for seed in range(3):
        rows(seed + 1).to_parquet(tmp_path / f"c{seed}.parquet")
        data[f"c{seed}"] = {"path": str(tmp_path / f"c{seed}.parquet"), "placement": ["spread", "packed"][seed > 0]}
    runner = TuneRunner(
        data=data, target="y", models=["ridge"], algorithm="random", scheduler="fifo", trials=2, slots=2, mlflow=False,
        report=False, pool="on", placement="packed",
    )  # fmt: skip
    assert [study.id for study in runner.plan().spread] == ["c0"]
    alone = runner.run(tmp_path / "alone", progress=False, in_process=True)
    mixed = runner.run(tmp_path / "mixed", progress=False)
    assert found(mixed) == found(alone)
    assert all('"pool"' in str(each.ensemble) for each in mixed.study_records)
    boosters = [sorted(os.listdir(tmp_path / name / "pool")) for name in ("alone", "mixed")]
    assert boosters[0] == boosters[1]
    assert np.isfinite(mixed.model("c0").predict(rows(1))).all()
