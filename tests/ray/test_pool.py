"""The pool is the same wherever studies run: what it makes of ensembles, and whom it answers; and so are baselines."""

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
    y = 10.0 ** (seed % 3) * (np.sin(2 * frame["a"]) * frame["b"] + rng.normal(scale=0.2, size=40))
    return frame.assign(y=y, predicted=y + rng.normal(size=40))


def found(result: RunResult) -> list[Any]:
    return [
        (
            *(each.customer, each.trial, each.ensemble, each.ensemble_score, each.test_score, each.status),
            *(each.family, each.reason, each.baseline, each.baseline_cv_score, each.gain, each.gain_error),
        )
        for each in result.study_records
    ]


def test_either_placement_finds_the_ensembles_that_one_process_finds(ray_cluster: None, tmp_path: Path) -> None:
    data: dict[str, Any] = {}
    for seed in range(4):
        rows(seed + 1)[: None if seed < 3 else 3].to_parquet(tmp_path / f"c{seed}.parquet")
        place = "spread" if seed in (0, 3) else "packed"
        data[f"c{seed}"] = {"path": str(tmp_path / f"c{seed}.parquet"), "placement": place}
    runner = TuneRunner(
        data=data, target="y", models=["ridge"], algorithm="random", scheduler="fifo", trials=2, slots=2, mlflow=False,
        report=False, pool="on", placement="packed", baseline={"column": "predicted"},
    )  # fmt: skip
    assert [study.id for study in runner.plan().spread] == ["c0", "c3"]
    alone = runner.run(tmp_path / "alone", progress=False, in_process=True)
    mixed = runner.run(tmp_path / "mixed", progress=False)
    assert found(mixed) == found(alone)
    *own, few = sorted(mixed.study_records, key=lambda each: each.customer)
    assert all('"pool"' in str(each.ensemble) for each in own)
    assert {each.baseline for each in own} == {"your predictions (predicted)"}
    assert (few.status, few.family) == ("pool", "pool")
    np.testing.assert_array_equal(mixed.model("c3").predict(rows(1)), alone.model("c3").predict(rows(1)))
    boosters = [sorted(os.listdir(tmp_path / name / "pool")) for name in ("alone", "mixed")]
    assert boosters[0] == boosters[1]
    assert np.isfinite(mixed.model("c0").predict(rows(1))).all()
