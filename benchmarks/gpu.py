"""XGBoost on a GPU against the CPU, on the same machine: many small customers that share GPUs, and one giant.

    python -m benchmarks.gpu [--customers 1000] [--rows 2000] [--giant 2000000] [--cpus 16] [--output json]

Each kind is run twice, in turns backwards (ABBA), by one definition with another line of `resources`:

- `small`: the customers, packed, with `{cpus: 1}` on a slot per CPU, and with `{cpus: 1, gpus: 0.25}` on four per GPU.
- `giant`: one customer, one trial at a time, with `{cpus: 16}` and with `{cpus: 16, gpus: 1}`.

Printed are seconds, the ratio CPU / GPU (above 1 the GPU is faster), and the largest difference of scores between both.
Without an NVIDIA GPU it refuses.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import pandas as pd

from tuning import TuneRunner
from tuning.planning.capacity import nvidia_gpus

COLUMNS, TRIALS, SHARE = 20, 4, 0.25
Figures = dict[str, float]


def rows_of(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Numbers, and a target that takes trees of some depth."""
    X = rng.normal(size=(rows, COLUMNS)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + (X[:, 3] > 0) * X[:, 4] + rng.normal(scale=0.3, size=rows)
    return pd.DataFrame(X, columns=[f"x{at}" for at in range(COLUMNS)]).assign(y=y)


def write(folder: Path, customers: int, rows: int) -> None:
    """Customers of so many rows, a Parquet file each."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    for number in range(customers):
        rows_of(rng, rows).to_parquet(folder / f"c{number:05d}.parquet")


def search(data: Path, run: Path, slots: int, resources: dict[str, float], placement: str) -> tuple[float, pd.Series]:
    """Seconds of a run, and the score of each customer."""
    given: dict[str, Any] = {"target": "y", "task": "regression", "search_space": "xgboost", "scheduler": "fifo"}
    given |= {"trials": TRIALS, "algorithm": "random", "ensemble": "none", "mlflow": False, "save_models": False}
    runner = TuneRunner(data=f"{data}/*.parquet", slots=slots, resources=resources, placement=placement, **given)
    began = time.perf_counter()
    board = runner.run(run, progress=False).leaderboard()
    return time.perf_counter() - began, board.set_index("customer")["cv_score"]


def compared(folder: Path, name: str, cpu: tuple[int, dict[str, float]], gpu: tuple[int, dict[str, float]]) -> Figures:
    """CPU, GPU, GPU, CPU over the same rows. cpu, gpu: slots and resources."""
    seconds: dict[str, list[float]] = {"cpu": [], "gpu": []}
    scores: dict[str, pd.Series] = {}
    placement = "packed" if name == "small" else "spread"
    for turn, kind in enumerate(("cpu", "gpu", "gpu", "cpu")):
        took, scores[kind] = search(
            folder / name, folder / f"{name}-{turn}", *(cpu if kind == "cpu" else gpu), placement
        )
        seconds[kind].append(took)
    found = {f"{kind}_s": median(values) for kind, values in seconds.items()}
    apart = (scores["cpu"] - scores["gpu"]).abs().max()
    return {**found, "cpu_by_gpu": found["cpu_s"] / found["gpu_s"], "scores_apart": float(apart)}


@click.command(help=__doc__)
@click.option("--customers", default=1000, show_default=True)
@click.option("--rows", default=2000, show_default=True, help="Of each of them.")
@click.option("--giant", default=2_000_000, show_default=True, help="Rows of the giant.")
@click.option("--cpus", default=len(os.sched_getaffinity(0)), show_default=True)
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
def main(customers: int, rows: int, giant: int, cpus: int, output: str) -> None:
    gpus = nvidia_gpus()
    if not gpus:
        sys.exit(
            "There is no NVIDIA GPU on this machine (/dev/nvidia0), so nothing was run. Run it where there is one."
        )
    shared = min(cpus, round(gpus / SHARE))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write(folder / "small", customers, rows)
        write(folder / "giant", 1, giant)
        found = {
            "small": compared(folder, "small", (cpus, {"cpus": 1}), (shared, {"cpus": 1, "gpus": SHARE})),
            "giant": compared(folder, "giant", (cpus, {"cpus": cpus}), (cpus, {"cpus": cpus, "gpus": 1})),
        }
    if output == "json":
        click.echo(
            json.dumps({"cpus": cpus, "gpus": gpus, "customers": customers, "rows": rows, "giant": giant, **found})
        )
        return
    for name, figures in found.items():
        click.echo(f"{name}: " + ", ".join(f"{key} {value:.4g}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
