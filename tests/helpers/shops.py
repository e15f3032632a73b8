"""Customers that get all kinds of answers, and runs of them, for tests of champions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from builders import definition

from tuning import TuneRunner

DAYS = 60


def write_shops(folder: Path, seed: int = 3, usual: tuple[str, ...] = ("good", "well")) -> None:
    """Usual shops with a good model, two whose last days contradict it, one of four rows and one of no number at all.

    What turns around in the last days is for `turned` what all shops have, for `odd` a column of its own.
    """
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    sign = np.where(np.arange(DAYS) >= 48, -1.0, 1.0)
    for name in (*usual, "turned", "odd"):
        x, z, w = rng.normal(size=(3, DAYS))
        y = 3.0 * x * (sign if name == "turned" else 1.0) + z + rng.normal(scale=0.2, size=DAYS)
        frame = pd.DataFrame({"day": np.arange(DAYS), "x": x, "z": z})
        if name == "odd":
            y, frame["w"] = y + 2.5 * w * sign, w
        frame.assign(y=y).to_csv(folder / f"{name}.csv", index=False)
    pd.DataFrame({"day": range(4), "x": 0.5, "z": 1.0, "y": [1.0, 2.0, 3.0, 10.0]}).to_csv(
        folder / "few.csv", index=False
    )
    pd.DataFrame({"day": range(4), "x": 0.5, "z": 1.0, "y": "?"}).to_csv(folder / "text.csv", index=False)


def run_of(folder: Path, run: Path, **fields: object) -> Path:
    """A finished run on such shops."""
    given = {"metric": "rmse", "trials": 2, "split": {"type": "time", "column": "day"}, "mlflow": False, "min_rows": 20}
    TuneRunner(**definition(folder, **{**given, **fields})).run(str(run), in_process=True, progress=False)
    return run
