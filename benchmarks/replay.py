"""What a simulated trial costs beyond the sampler's own time: `python -m benchmarks.replay` (goal: 1 ms at most)."""

from __future__ import annotations

import itertools
import json
import time

import numpy as np
import pandas as pd

from tuning.compare import Table, replay

TASKS, SEEDS, TRIALS, STEPS = 8, 20, 50, 9


def table() -> Table:
    """A bowl per task over 12 x 10 x 2 configurations of nine free steps."""
    rng = np.random.default_rng(0)
    rows = []
    for task in range(TASKS):
        a, b = rng.random(2)
        for x, y, kind in itertools.product(np.linspace(0, 1, 12), np.linspace(0, 1, 10), ["p", "q"]):
            bowl = (x - a) ** 2 + (y - b) ** 2 + 0.2 * (kind == "p")
            rows += [(f"t{task}", x, y, kind, step, bowl + 0.5 / step) for step in range(1, STEPS + 1)]
    names = ["task", "param.x", "param.y", "param.kind", "step", "score"]
    return Table.from_frame(pd.DataFrame(rows, columns=names), "min")


def measure(made: Table, method: str) -> dict[str, float | str]:
    """Wall milliseconds per trial: in the sampler (evaluations are free, so seconds are its own), and the rest."""
    before = time.perf_counter()
    curves = replay(made, [method, {"name": "random", "label": "other"}], seeds=SEEDS, trials=TRIALS)
    spent = time.perf_counter() - before
    own = curves[curves["method"] == method]
    sampler = curves.groupby(["method", "task", "seed"])["seconds"].last().sum()
    return {
        "method": method,
        "sampler_ms": 1000 * own.groupby(["task", "seed"])["seconds"].last().sum() / len(own),
        "rest_ms": 1000 * (spent - sampler) / len(curves),
    }


if __name__ == "__main__":
    made = table()
    replay(made, "random,optuna", seeds=1, trials=12)  # imports
    for name in ("random", "random+asha", "optuna"):
        print(json.dumps(measure(made, name)))
