"""Customers that get all kinds of answers, and runs of them, for tests of champions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from builders import definition

from tuning import TuneRunner

DAYS = 60


def write_shops(folder: Path, seed: int = 3) -> None:
    """Two shops with a good model, one whose last days contradict it, one of four rows and one of no number at all."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("good", "well", "turned"):
        x, z = rng.normal(size=DAYS), rng.normal(size=DAYS)
        slope = np.where((name == "turned") & (np.arange(DAYS) >= 48), -3.0, 3.0)
        y = slope * x + z + rng.normal(scale=0.2, size=DAYS)
        pd.DataFrame({"day": np.arange(DAYS), "x": x, "z": z, "y": y}).to_csv(folder / f"{name}.csv", index=False)
    pd.DataFrame({"day": range(4), "x": 0.5, "z": 1.0, "y": [1.0, 2.0, 3.0, 10.0]}).to_csv(
        folder / "few.csv", index=False
    )
    pd.DataFrame({"day": range(4), "x": 0.5, "z": 1.0, "y": "?"}).to_csv(folder / "text.csv", index=False)


def run_of(folder: Path, run: Path, **fields: object) -> Path:
    """A finished run on such shops."""
    given = {"metric": "rmse", "trials": 2, "split": {"type": "time", "column": "day"}, "mlflow": False, "min_rows": 20}
    TuneRunner(**definition(folder, **{**given, **fields})).run(str(run), in_process=True, progress=False)
    return run
