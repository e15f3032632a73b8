"""An objective whose trials can go on from each other's states, and one that ends the process of a trial."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tuning.steps import Step

STEPS = 6


def climb(config: Mapping[str, float], state: Any) -> Iterator[Step]:
    """A model of one weight; the state is (step, weight)."""
    done, weight = state or (0, 0.0)
    for step in range(done + 1, STEPS + 1):
        weight += (1 - weight) * 0.3 * config["x"] * (1 - abs(config["y"] - weight))
        yield Step(step, weight, get_state=lambda now=(step, weight): now)


def deadly(times: Path, most: int, hangs: bool) -> Any:
    """`climb`, but one configuration's trial kills its process at the third step, `most` times in all, or hangs."""

    def objective(config: Mapping[str, float], state: Any) -> Iterator[Step]:
        for step in climb(config, state):
            if step.step == 3 and config["x"] == 0.987 and len(list(times.iterdir())) < most:
                (times / f"{os.getpid()}").touch()
                while hangs:
                    signal.pause()
                os.kill(os.getpid(), signal.SIGKILL)
            yield step

    return objective
