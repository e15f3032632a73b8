"""Comparisons of algorithms on an objective, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from tuning.compare import compare

SPACE = {
    "x": {"type": "float", "low": 0, "high": 1, "default": 0.9},
    "y": {"type": "float", "low": 0, "high": 1, "default": 0.1},
}


def bowl(config: dict[str, float], data: pd.DataFrame) -> Iterator[float]:
    """Better with every step, best where the customer's rows say."""
    a, b = data["a"].iloc[0], data["b"].iloc[0]
    for step in range(1, 5):
        yield -((config["x"] - a) ** 2) - (config["y"] - b) ** 2 - 0.1 / step


def fields(tmp_path: Path, customers: int = 3, **changes: Any) -> dict[str, Any]:
    """Keywords of a comparison of an objective on a few customers."""
    rows = [{"customer": f"c{i}", "a": 0.1 + 0.2 * i, "b": 0.5} for i in range(customers) for _ in range(4)]
    plain: dict[str, Any] = {
        "data": pd.DataFrame(rows),
        "by": "customer",
        "objective": bowl,
        "search_space": SPACE,
        "metric": "score",
        "steps": 4,
        "storage": str(tmp_path / "runs"),
        "mlflow": False,
        "slots": 1,
    }
    return {**plain, **changes}


def run(tmp_path: Path, name: str = "run", **changes: Any) -> Any:
    """A comparison in this process."""
    options = {"algorithms": "random,optuna,random+asha", "seeds": 2, "trials": 6} | changes
    given = fields(tmp_path, **{key: options.pop(key) for key in list(options) if key in ("customers", "objective")})
    return compare(**given, **options, run_dir=str(tmp_path / name), in_process=True, progress=False)
