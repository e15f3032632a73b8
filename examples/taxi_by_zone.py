"""The best of three plain estimators for every taxi zone and month, from one keyed table per month.

python examples/taxi_by_zone.py 'trips/*.parquet' [--run-dir runs/taxi]

The job of "Batch training with Ray Core": trip duration from the drop-off zone, zones with fewer than 4 trips left
out, mean absolute error, best model first. Files may be CSV or Parquet with the TLC's column names.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from tuning import RunResult, TuneRunner


def search(trips: str, run_dir: str | None = None, **changes: object) -> RunResult:
    """A run with one customer per pickup zone; with a pattern that matches several files, per file and zone."""
    runner = TuneRunner(
        name="taxi-by-zone",
        data=trips,
        by="PULocationID",
        prepare=f"{Path(__file__).parent / 'nyc_taxi.py'}:trip_duration",
        target="duration",
        features=["DOLocationID"],
        task="regression",
        metric="mae",
        models=[LinearRegression(), DecisionTreeRegressor(), DecisionTreeRegressor(splitter="random")],
        ensemble="none",
        **changes,
    )
    return runner.run(run_dir)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trips")
    parser.add_argument("--run-dir")
    asked = parser.parse_args()
    result = search(asked.trips, asked.run_dir)
    board = result.leaderboard()
    good = board[board["status"] == "ok"].sort_values("test_score")
    print(good[["customer", "model", "cv_score", "test_score", "baseline_test_score"]].to_string(index=False))
    print(good["model"].value_counts().to_string())
    counts = result.summary()
    print(
        f"{counts['succeeded']} of {counts['customers']} zones have a model after {counts['trials']} trials; "
        f"{counts['without_model']} have none, most with fewer than 4 trips. {result.directory.shown}"
    )


if __name__ == "__main__":
    main()
