"""What a small run waits for: imports, the first trial, its end; beside the start of a bare Ray.

    python -m benchmarks.first_second --output json

Each measurement is a process of its own, and every second round is backwards (ABBA):

- `function`: 30 evaluations of x ** 2, and once more in a second cell.
- `customers`: 24 files, 6 trials each, without Ray; `customers_mlflow` with the copy in MLflow.
- `ray`: `ray.init` and an actor that imports pandas and scikit-learn.
- `on_ray`: the customers with `placement: packed`; `on_ray_mlflow` with the copy in MLflow.
- `cells`: the same in a notebook, three cells one after the other, in one Ray.

Seconds are of wall time from the start of the interpreter, cores of this process and the children it has waited for.
`prompt` is from the last trial to the end of the process. `musts` holds what must not be more than its limit; the ratio
is the median over the rounds of `on_ray` by `ray` in the same round.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

Figures = dict[str, Any]  # seconds, core-seconds
CELL_S = 10.0  # somebody reads what a cell shows before they run the next one


def square(config: dict[str, float]) -> float:
    return config["x"] ** 2


def function(began: float) -> Figures:
    """The seconds of both cells, without imports, and core-seconds until the first has ended."""
    from search_spaces import Float, SearchSpace
    from tuning import TuneRunner

    space = SearchSpace([Float("x", -10, 10, default=1.0)])
    runner = TuneRunner(objective=square, search_space=space, metric="loss", mode="min", trials=30, mlflow=False)
    import optuna  # noqa: F401  # loaded for the time it takes: what a run loads, and a second one finds loaded
    import ray.tune  # noqa: F401  # the same

    found: Figures = {"imports": time.time() - began, "imports_cores": cores()}
    for cell in ("run", "second_cell"):
        with tempfile.TemporaryDirectory() as folder:
            started = time.time()
            result = runner.run(f"{folder}/run", progress=False)
            ended = time.time()
            trials = result.trial_records
        found[cell] = ended - started
        found[f"{cell}_first_trial"] = min(trial.started + trial.seconds for trial in trials) - started
        found[f"{cell}_end"] = ended - max(trial.started + trial.seconds for trial in trials)
    return {**found, "cores": cores()}


def customers(began: float, **fields: object) -> Figures:
    """From the start of the interpreter to the first trial, the end, and from the last trial to the end."""
    from tuning import TuneRunner

    with tempfile.TemporaryDirectory() as folder:
        result = TuneRunner(definition_of(Path(folder), **fields)).run(f"{folder}/run", progress=False)
        ended = time.time()
        ends = [trial.started + trial.seconds for trial in result.trial_records]
        plots = len(list(Path(folder, "run", "mlruns").glob("*/artifacts/plots/*.svg")))
    found = {"first_trial": min(ends) - began, "run": ended - began, "end": ended - max(ends), "last": max(ends)}
    return {**found, "plots": plots, "loads_mlflow": int("mlflow" in sys.modules), "cores": cores()}


def cells(began: float) -> Figures:
    """From the call to the first trial of each cell; and from the last trial to the end of the cell."""
    from tuning import TuneRunner

    sys.ps1 = ">>> "  # as in a notebook
    found: Figures = {"imports": time.time() - began}
    with tempfile.TemporaryDirectory() as folder:
        definition = definition_of(Path(folder), placement="packed")
        for cell in ("first", "second", "third"):
            started = time.time()
            result = TuneRunner(definition).run(f"{folder}/{cell}", progress=False)
            ended = time.time()
            ends = [trial.started + trial.seconds for trial in result.trial_records]
            found |= {f"{cell}_first_trial": min(ends) - started, f"{cell}_end": ended - max(ends)}
            time.sleep(CELL_S)
    return {**found, "cores": cores()}


def definition_of(folder: Path, **fields: object) -> dict[str, Any]:
    """The 24 customers, whose files are made in the folder."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    for number in range(24):
        rows = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd"))
        rows.assign(y=rows["a"] + rng.normal(size=60)).to_csv(folder / f"customer-{number:02d}.csv", index=False)
    given = {"data": f"{folder}/*.csv", "target": "y", "search_space": "ridge", "task": "regression", "trials": 6}
    return {**given, "mlflow": False, **fields}


def bare_ray(began: float) -> Figures:
    """Until an actor of a Ray with this machine's cores has imported pandas and scikit-learn."""
    import ray

    ray.init(address="local", include_dashboard=False, log_to_driver=False, configure_logging=False)

    class Worker:
        def load(self) -> None:
            import pandas  # noqa: F401  # for the time that it takes
            import sklearn.linear_model  # noqa: F401  # the same

    ray.get(ray.remote(Worker).remote().load.remote())
    return {"first_trial": time.time() - began, "cores": cores()}


def cores() -> float:
    """Core-seconds of this process and of the children that it has waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


MEASURED: dict[str, Callable[[float], Figures]] = {
    "function": function,
    "customers": customers,
    "customers_mlflow": partial(customers, mlflow=True),
    "ray": bare_ray,
    "on_ray": partial(customers, placement="packed"),
    "on_ray_mlflow": partial(customers, placement="packed", mlflow=True),
    "cells": cells,
}
# What must not be more than its limit: a figure, or one by another in the same round.
MUSTS: dict[str, tuple[float, tuple[str, str], tuple[str, str] | None]] = {
    "on_ray_by_ray": (1.3, ("on_ray", "first_trial"), ("ray", "first_trial")),
    "function_s": (1.0, ("function", "run"), None),
    "imports_cores": (2.0, ("function", "imports_cores"), None),
    "second_cell_first_trial_s": (1.0, ("cells", "second_first_trial"), None),
    "end_s": (1.0, ("customers", "prompt"), None),
    "end_mlflow_s": (1.0, ("customers_mlflow", "prompt"), None),
    "end_on_ray_s": (1.0, ("on_ray", "prompt"), None),
    "end_on_ray_mlflow_s": (1.0, ("on_ray_mlflow", "prompt"), None),
}


@click.command()
@click.option("--rounds", default=2, show_default=True, help="Measurements of each; every second round is backwards.")
@click.option("--only", multiple=True, type=click.Choice(list(MEASURED)), help="Some of them.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--child", nargs=2, type=(click.Choice(list(MEASURED)), float), hidden=True)
def main(rounds: int, only: tuple[str, ...], output: str, child: tuple[str, float] | None) -> None:
    """Measure, and print the median of each figure in seconds, and what must hold."""
    if child is not None:
        click.echo(json.dumps(MEASURED[child[0]](child[1])))
        return
    names = [name for name in MEASURED if not only or name in only]
    found: dict[str, list[Figures]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            found[name].append(measured(name))
    shown: dict[str, Figures] = {name: medians(each) for name, each in found.items()}
    shown["musts"] = {name: figures for name in MUSTS if (figures := _must(name, found)) is not None}
    shown["load"] = {"minute": os.getloadavg()[0]}
    if output == "json":
        click.echo(json.dumps(shown))
        return
    for name, figures in shown.items():
        click.echo(f"{name:17}" + "  ".join(f"{key} {_text(value)}" for key, value in figures.items()))


def measured(name: str) -> Figures:
    """The figures of one process."""
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "MLFLOW_DISABLE_TELEMETRY": "true"}
    # Else all workers, also the bare one, stand behind whatever else this machine does.
    environment.setdefault("RAY_worker_niceness", "0")
    command = [sys.executable, "-m", "benchmarks.first_second", "--child", name, str(time.time())]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    ended = time.time()
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    if "last" in figures:
        figures["prompt"] = ended - figures.pop("last")
    return figures


def medians(each: list[Figures]) -> Figures:
    """Each figure over the rounds."""
    return {key: round(statistics.median(figures[key] for figures in each), 3) for key in each[0]}


def _must(name: str, found: dict[str, list[Figures]]) -> Figures | None:
    """The median, the limit and whether it holds; None where it was not measured."""
    limit, (case, key), other = MUSTS[name]
    if not found.get(case) or (other is not None and not found.get(other[0])):
        return None
    values = [figures[key] for figures in found[case]]
    if other is not None:
        values = [value / figures[other[1]] for value, figures in zip(values, found[other[0]], strict=True)]
    value = round(statistics.median(values), 3)
    return {"is": value, "limit": limit, "holds": value <= limit}


def _text(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
