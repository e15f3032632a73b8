"""Thousands of small models from one table: the best of two for every shop and product.

python examples/many_models.py --customers 2000 [--rows 20] [--run-dir runs/many]

The second approach of "Training One Million Machine Learning Models in Record Time with Ray": a table is divided by
a key of two columns, every group gets its model, and one row per group with its scores is written to Parquet. (The
first approach, a file per model, is `data: customers/*.csv`, as `tuning demo` has it.)
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from tuning import RunResult, TuneRunner


def write_table(path: Path, customers: int, rows: int, seed: int = 0) -> None:
    """`customers` groups of `rows` rows each, in no order; every group has a slope of its own."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(customers), rows))
    products = max(1, round(customers**0.5))
    v2, v3 = rng.normal(size=(2, len(group)))
    slope = rng.normal(size=customers)[group]
    y = slope * v2 + 0.5 * v3 + rng.normal(scale=0.2, size=len(group))
    columns = {"shop": group // products, "product": group % products, "v2": v2, "v3": v3, "sales": y}
    pd.DataFrame(columns).to_parquet(path, index=False)


def search(table: Path, run_dir: str, **changes: object) -> RunResult:
    """The best of two models for every combination of shop and product."""
    runner = TuneRunner(
        name="many-models",
        data=table,
        by=["shop", "product"],
        target="sales",
        task="regression",
        metric="r2",
        models=[LinearRegression(), DecisionTreeRegressor(max_depth=3)],
        ensemble="none",
        mlflow=False,
        **changes,
    )
    return runner.run(run_dir)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--customers", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=20, help="of each")
    parser.add_argument("--run-dir")
    asked = parser.parse_args()
    folder = Path(asked.run_dir or tempfile.mkdtemp(prefix="many-models-"))
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / "table.parquet", asked.customers, asked.rows)

    import ray

    ray.init(address="local", include_dashboard=False, log_to_driver=False)
    started = time.perf_counter()
    result = search(folder / "table.parquet", str(folder / "run"))
    seconds = time.perf_counter() - started
    board = result.leaderboard()
    board.to_parquet(folder / "best.parquet", index=False)
    rate = len(result.trial_records) / seconds
    print(board[["customer", "model", "cv_score", "test_score"]].head().to_string(index=False))
    print(board["model"].value_counts().to_string())
    print(
        f"{len(board)} customers, {len(result.trial_records)} models in {seconds:.1f} s on {os.cpu_count()} CPUs: "
        f"{rate:.0f} per second, so a million would take {1e6 / rate / 3600:.1f} h. {folder / 'best.parquet'}"
    )


if __name__ == "__main__":
    main()
