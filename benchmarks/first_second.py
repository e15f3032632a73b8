"""What a small run waits for: imports, the first trial, its end; beside the start of a bare Ray.

    python -m benchmarks.first_second --output json

Each measurement is a process of its own, in the order ABBA: `function` (30 evaluations of x ** 2, and once more in a
second cell), `customers` (24 files, 6 trials each), `ray` (`ray.init` and an actor that imports pandas and
scikit-learn, which a run on Ray cannot be quicker than), `on_ray` (the customers with `placement: packed`).
Seconds are of wall time from the start of the interpreter, cores of this process and the children it has waited for.
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
from pathlib import Path

import click

Figures = dict[str, float]


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
        write_customers(Path(folder))
        given = {"data": f"{folder}/*.csv", "target": "y", "search_space": "ridge", "task": "regression", "trials": 6}
        result = TuneRunner({**given, "mlflow": False, **fields}).run(f"{folder}/run", progress=False)
        ended = time.time()
        trials = result.trial_records
    ends = [trial.started + trial.seconds for trial in trials]
    return {"first_trial": min(ends) - began, "run": ended - began, "end": ended - max(ends), "cores": cores()}


def write_customers(folder: Path) -> None:
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    for number in range(24):
        rows = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd"))
        rows.assign(y=rows["a"] + rng.normal(size=60)).to_csv(folder / f"customer-{number:02d}.csv", index=False)


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


def customers_on_ray(began: float) -> Figures:
    return customers(began, placement="packed")


MEASURED: dict[str, Callable[[float], Figures]] = {
    "function": function,
    "customers": customers,
    "ray": bare_ray,
    "on_ray": customers_on_ray,
}


@click.command()
@click.option("--rounds", default=2, show_default=True, help="Measurements of each; every second round is backwards.")
@click.option("--only", multiple=True, type=click.Choice(list(MEASURED)), help="Some of them.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--child", nargs=2, type=(click.Choice(list(MEASURED)), float), hidden=True)
def main(rounds: int, only: tuple[str, ...], output: str, child: tuple[str, float] | None) -> None:
    """Measure, and print the median of each figure in seconds."""
    if child is not None:
        click.echo(json.dumps(MEASURED[child[0]](child[1])))
        return
    names = [name for name in MEASURED if not only or name in only]
    found: dict[str, list[Figures]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            found[name].append(measured(name))
    shown = {
        name: {key: round(statistics.median(figures[key] for figures in each), 3) for key in each[0]}
        for name, each in found.items()
    }
    if output == "json":
        click.echo(json.dumps(shown))
        return
    for name, figures in shown.items():
        click.echo(f"{name:10}" + "  ".join(f"{key} {value:.2f}" for key, value in figures.items()))


def measured(name: str) -> Figures:
    """The figures of one process."""
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-m", "benchmarks.first_second", "--child", name, str(time.time())]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    main()
