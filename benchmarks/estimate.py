"""How right the time left is that a run's progress says, when it says it first, and at a quarter, at half and at
three quarters of its time.

    python -m benchmarks.estimate            four runs in this process, three minutes on a quiet core

Time is this process's CPU time, so that other work on the machine does not count.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tuning import TuneRunner
from tuning.basics.timing import Timing
from tuning.cli.demo_customers import write_customers
from tuning.driver import session
from tuning.driver.progress import Counter
from tuning.planning.run_plan import Plan
from tuning.runs.progress import Progress

SHARES = (0.25, 0.5, 0.75)
SIZES = (30, 100, 300, 1000, 3000)  # rows


def runs() -> Iterator[tuple[str, dict[str, Any]]]:
    """What is run, with its definition."""
    rng = np.random.default_rng(0)
    frames = {f"{rows}-{number}": _frame(rng, rows) for rows in SIZES for number in range(40)}
    yield "200 customers of 30 to 3000 rows, ridge", {"data": frames, "search_space": "ridge", "trials": 50}
    frames = {f"c{number}": _frame(rng, int(rng.integers(250, 900))) for number in range(21)}
    yield "21 customers of 250 to 900 rows, all models", {"data": frames, "trials": 16}
    yield "one customer of 2000 rows, xgboost", {"data": _frame(rng, 2000), "models": ["xgboost"], "trials": 1000}
    with tempfile.TemporaryDirectory() as folder:
        write_customers(Path(folder))
        demo = {"data": f"{folder}/*.csv", "target": "churned", "metric": "roc_auc", "trials": 16}
        yield "the 24 customers of the demo, three of them without a model", demo


def _frame(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    X = rng.normal(size=(rows, 4))
    return pd.DataFrame(X, columns=list("abcd")).assign(y=X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=rows))


def said_of(definition: dict[str, Any]) -> list[Progress]:
    """What the progress of a run says after each report."""
    said: list[Progress] = []

    class Watched(Counter):
        @classmethod
        def for_plan(cls, plan: Plan, recorded: int, best: float | None = None, failed: int = 0) -> Counter:
            counter = super().for_plan(plan, recorded, best, failed)
            counter.clock = time.process_time
            counter._started = time.process_time()
            return counter

        def __call__(self, result: Any) -> None:
            super().__call__(result)
            said.append(self.now)

    session.Counter = Watched  # type: ignore[misc]  # the run's own
    search = TuneRunner({"target": "y", **definition}, mlflow=False, report=False)
    search.timing = Timing(parts_s=0.2)
    with tempfile.TemporaryDirectory() as folder:
        search.run(str(Path(folder, "run")), progress=False, in_process=True)
    return said


def main() -> None:
    """Print a line per run and moment."""
    for name, definition in runs():
        said = said_of(definition)
        whole = said[-1].seconds
        first = next(each.seconds for each in said if each.seconds_left is not None) / whole
        for share in (first, *SHARES):
            now = next(each for each in said if each.seconds >= share * whole)
            left = whole - now.seconds
            ratio = "nothing yet" if now.seconds_left is None else f"{now.seconds_left / left:.2f} of what it was"
            print(f"{name}: at {share:.0%} of {whole:.0f} s the time left was {ratio}", flush=True)


if __name__ == "__main__":
    main()
