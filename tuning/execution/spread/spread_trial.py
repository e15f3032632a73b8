"""A trial of a spread study: its steps come as reports of a worker."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tuning.steps import Step
from tuning.study.trial import Trial, TrialShape

# What of a worker's report is part of the truth.
REPORTED = frozenset(
    {"step", "score", "seconds", "folds", "figures", "full", "race", "prefix", "progress", "fit_seconds", "worker"}
)
# Of those, what is known of the trial before its first step.
SHAPE = frozenset({"full", "race", "prefix", "progress"})


class SpreadTrial(Trial):
    """A trial somewhere on the cluster.

    death: what Tune said of its worker's last end. checkpoint: the state from which it can go on, a path in the run
    directory. race_steps: of the longest trial of its race.
    """

    __slots__ = ("checkpoint", "death", "race_steps")

    def __init__(self, number: int, trial_id: str, config: dict[str, Any], family: str) -> None:
        super().__init__(number, trial_id, config, family)
        self.death: str | None = None
        self.checkpoint: str | None = None
        self.race_steps = 0

    def take_shape(self, report: Mapping[str, Any]) -> None:
        """Its worker says how long it is, and what its steps are."""
        prefix = bool(report["prefix"])
        self.shape = TrialShape(int(report["full"]), prefix, bool(report.get("progress", prefix)))
        self.race_steps = int(report.get("race", self.shape.full_steps))

    def take_step(self, report: Mapping[str, Any]) -> Step:
        """A step that its worker reports. NaN and infinity are scores; anything that is no number is an error."""
        folds, figures = report.get("folds") or (), report.get("figures") or {}
        step = Step(int(report["step"]), float(report["score"]), tuple(folds), dict(figures))
        self.steps.append(step)
        self.seconds, self.fit_seconds = float(report["seconds"]), float(report["fit_seconds"])
        self.step_seconds.append(self.seconds)
        self.worker = str(report.get("worker", ""))
        return step

    @property
    def last_step(self) -> float:
        return self.steps[-1].step if self.steps else -math.inf
