"""A giant and many small customers in one run, placed by the plan; and all of them packed, and all spread.

    python -m benchmarks.experiments.mixed_sizes [--small 200] [--trials 8] [--giant 2.0] [--slots 4] [--rounds 2]

Trials take simulated time: they sleep, so that many of them disturb each other little on few cores. A small
customer's trial takes 10 ms, the giant's as many seconds as `--giant` says, which is what a plan supposes by their
rows. All three run on one Ray, which has started before, in turns: there, and back.

Prints for each placement the median of the wall seconds of whole runs and its ratio to that of the plan's own choice;
when the giant's last trial and the last of all trials had ended; and the seconds that all slots take without any
overhead.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from tuning import TuneRunner
from tuning.study.study import TRIAL_ROWS

PLACEMENTS = ("auto", "packed", "spread")
ROWS_PER_S = 100_000  # a small customer's trial, which is nothing but `TRIAL_ROWS`, takes 10 ms


def sleeps(config: dict[str, float], data: pd.DataFrame) -> float:
    """An objective that takes as long as its customer has rows."""
    time.sleep((TRIAL_ROWS + len(data)) / ROWS_PER_S)
    return (config["x"] - 1) ** 2


def fleet(small: int, giant: float) -> dict[str, pd.DataFrame]:
    """The customers: `giant` is of its trials' seconds."""
    sizes = {f"small-{number:04d}": 2 for number in range(small)}
    sizes["giant"] = max(2, int(giant * ROWS_PER_S) - TRIAL_ROWS)
    return {name: pd.DataFrame({"a": np.zeros(rows)}) for name, rows in sizes.items()}


def measured(data: dict[str, pd.DataFrame], placement: str, trials: int, slots: int) -> dict[str, Any]:
    """Seconds of one run."""
    runner = TuneRunner(
        data=data,
        objective=sleeps,
        search_space={"x": {"type": "float", "low": -2.0, "high": 2.0}},
        metric="loss",
        mode="min",
        algorithm="random",
        scheduler="fifo",
        trials=trials,
        slots=slots,
        placement=placement,
        mlflow=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        began = time.time()
        result = runner.run(Path(folder) / "run", progress=False)
        wall = time.time() - began
        ends = {
            name: max(record.started + record.seconds for record in found) - began
            for name, found in (
                ("giant", [record for record in result.trial_records if record.customer == "giant"]),
                ("last", result.trial_records),
            )
        }
        return {"wall": wall, **ends, "trials": len(result.trial_records), "spread": len(runner.plan().spread)}


@click.command()
@click.option("--small", default=200, help="Small customers.")
@click.option("--trials", default=8, help="Trials of each customer.")
@click.option("--giant", default=2.0, help="Seconds of one of the giant's trials.")
@click.option("--slots", default=4)
@click.option("--rounds", default=2)
def main(small: int, trials: int, giant: float, slots: int, rounds: int) -> None:
    """Measure the three placements in turns."""
    import ray

    ray.init(num_cpus=slots, include_dashboard=False, log_to_driver=False, configure_logging=False)
    data = fleet(small, giant)
    measured(fleet(slots, 0.0), "packed", 1, slots)  # whatever is loaded with the first run
    found: dict[str, list[dict[str, Any]]] = {placement: [] for placement in PLACEMENTS}
    for number in range(rounds):
        for placement in PLACEMENTS[:: -1 if number % 2 else 1]:
            found[placement].append(measured(data, placement, trials, slots))
            click.echo(f"{placement}: {found[placement][-1]}", err=True)
    base = statistics.median(each["wall"] for each in found["auto"])
    ideal = trials * (small * TRIAL_ROWS / ROWS_PER_S + giant) / slots
    click.echo(f"{1 + small} customers, {trials} trials each, {slots} slots; without overhead {ideal:.1f} s")
    click.echo("| placement | spread | wall | of auto's | giant's last trial | last trial |\n|---|---|---|---|---|---|")
    for placement, runs in found.items():
        wall, giants, last = (statistics.median(each[name] for each in runs) for name in ("wall", "giant", "last"))
        click.echo(
            f"| {placement} | {runs[0]['spread']} | {wall:.1f} s | {wall / base:.2f} | {giants:.1f} s | {last:.1f} s |"
        )
    click.echo(json.dumps(found))


if __name__ == "__main__":
    main()
