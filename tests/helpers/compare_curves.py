"""Made-up curves for tests of the comparison layer."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd


def curves(
    skills: Mapping[str, float],
    tasks: int = 12,
    seeds: int = 5,
    trials: int = 20,
    cost: Mapping[str, float] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Curves with losses: uniform draws, of which a method with skill s improves each by the factor 1 - s.

    cost: seconds and steps per trial (default 1).
    """
    rng = np.random.default_rng(seed)
    keys = list(itertools.product(skills, range(tasks), range(seeds)))
    scores, seconds = [], []
    for method, task, _ in keys:
        scores.append((1 - skills[method]) * rng.random(trials) * (1 + task))
        seconds.append(np.cumsum(rng.gamma(50, 0.02, trials)) * (cost or {}).get(method, 1.0) * (1 + task))
    methods, numbers, repetitions = (np.repeat(np.array(column), trials) for column in zip(*keys, strict=True))
    number = np.tile(np.arange(1, trials + 1), len(keys))
    return pd.DataFrame(
        {
            "method": methods,
            "task": [f"c{task}" for task in numbers],
            "seed": repetitions,
            "trial": number,
            "score": np.concatenate(scores),
            "steps": number * 10 * np.array([(cost or {}).get(method, 1.0) for method in methods]),
            "seconds": np.concatenate(seconds),
            "mode": "min",
        }
    )


def grid(tasks: int = 6, steps: int = 1, seed: int = 0) -> pd.DataFrame:
    """A bowl per task over 12 x 10 x 2 configurations, to be minimised; more steps are better."""
    rng = np.random.default_rng(seed)
    rows = []
    for task in range(tasks):
        a, b = rng.random(2)
        for x, y, kind in itertools.product(np.linspace(0, 1, 12), np.logspace(-3, 0, 10), ["p", "q"]):
            bowl = (x - a) ** 2 + (np.log10(y) / 3 + 1 - b) ** 2 + 0.2 * (kind == "p") + rng.normal(0, 0.005)
            rows += [(f"t{task}", x, y, kind, step, bowl + 0.5 / step, 0.1) for step in range(1, steps + 1)]
    names = ["task", "param.x", "param.y", "param.kind", "step", "score", "seconds"]
    return pd.DataFrame(rows, columns=names)
