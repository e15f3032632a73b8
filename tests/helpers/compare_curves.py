"""Made-up curves for tests of the comparison layer."""

from __future__ import annotations

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
    frames = []
    for method, skill in skills.items():
        price = (cost or {}).get(method, 1.0)
        for task in range(tasks):
            for number in range(seeds):
                curve = {
                    "method": method,
                    "task": f"c{task}",
                    "seed": number,
                    "trial": np.arange(1, trials + 1),
                    "score": (1 - skill) * rng.random(trials) * (1 + task),
                    "steps": np.arange(1, trials + 1) * 10 * price,
                    "seconds": np.cumsum(rng.gamma(50, 0.02, trials)) * price * (1 + task),
                    "mode": "min",
                }
                frames.append(pd.DataFrame(curve))
    return pd.concat(frames, ignore_index=True)
