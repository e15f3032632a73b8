"""How many trees does a forest need? Twenty forests on California housing, one after another and then in parallel.

python examples/forest_sweep.py housing.csv [--slots 8]

The sweep of "Distributed Python with Ray" (n_estimators from 8 to 84 by 4, mean squared error on a fifth of the rows):
there 130 s became 20.1 s, 6.5 times as fast. Here the same function is one study, first in this process, then with
each trial in a worker of its own; both must find the same errors.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

from search_spaces import Int, SearchSpace
from tuning import TuneRunner

TARGET = "median_house_value"


def forest_error(config: dict[str, Any], data: pd.DataFrame) -> float:
    """Mean squared error of one forest on the test rows."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.metrics import mean_squared_error
    from sklearn.model_selection import train_test_split

    rows = data.select_dtypes("number").dropna()
    X_train, X_test, y_train, y_test = train_test_split(
        rows.drop(columns=TARGET), rows[TARGET], test_size=0.2, random_state=201
    )
    forest = RandomForestRegressor(n_estimators=config["n_estimators"], random_state=201).fit(X_train, y_train)
    return float(mean_squared_error(y_test, forest.predict(X_test)))


def sweep(table: str, folder: str, slots: int, *, parallel: bool, most: int = 84) -> tuple[pd.DataFrame, float]:
    """(n_estimators and error of every trial, seconds)."""
    forests = (most - 8) // 4 + 1
    runner = TuneRunner(
        data=table,
        objective=forest_error,
        search_space=SearchSpace([Int("n_estimators", 8, most, step=4, default=8)]),
        algorithm={"name": "grid", "levels": forests},
        scheduler="fifo",
        trials=forests,
        metric="error",
        mode="min",
        slots=slots,
        placement="spread" if parallel else "packed",
        mlflow=False,
    )
    started = time.perf_counter()
    trials = runner.run(folder, in_process=not parallel, progress=False).trials()
    seconds = time.perf_counter() - started
    return trials[["config.n_estimators", "score"]].sort_values("config.n_estimators", ignore_index=True), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--slots", type=int, default=len(os.sched_getaffinity(0)), help="forests at once")
    parser.add_argument("--most", type=int, default=84, help="trees of the largest forest")
    asked = parser.parse_args()

    import ray

    started = time.perf_counter()
    ray.init(address="local", num_cpus=asked.slots, include_dashboard=False, log_to_driver=False)
    print(f"Ray started in {time.perf_counter() - started:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        one, alone = sweep(str(asked.table), f"{folder}/sequential", 1, parallel=False, most=asked.most)
        print(one.to_string(index=False))
        print(f"one after another: {len(one)} forests in {alone:.1f} s")
        all_, together = sweep(str(asked.table), f"{folder}/parallel", asked.slots, parallel=True, most=asked.most)
    print(f"{asked.slots} at once: {len(all_)} forests in {together:.1f} s, {alone / together:.1f} times as fast")
    if not one.equals(all_):
        raise SystemExit("the two sweeps found different errors")


if __name__ == "__main__":
    main()
