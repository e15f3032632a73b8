"""A trial of a spread study: its steps come as reports of a worker."""

from __future__ import annotations

import math

from tuning.execution.reports import StepReport, TrialLength
from tuning.steps import Step
from tuning.study.trial import Trial, TrialShape


class SpreadTrial(Trial):
    """A trial somewhere on the cluster.

    death: what Tune said of its worker's last end. checkpoint: the state from which it can go on, a path in the run
    directory. race_steps: of the longest trial of its race.
    """

    __slots__ = ("checkpoint", "death", "race_steps")

    def __init__(self, number: int, trial_id: str, config: dict[str, object], family: str) -> None:
        super().__init__(number, trial_id, config, family)
        self.death: str | None = None
        self.checkpoint: str | None = None
        self.race_steps = 0

    def take_length(self, length: TrialLength) -> None:
        """Its worker says how long it is, and what its steps are."""
        self.shape = TrialShape(length.full_steps, length.best_prefix, length.progress)
        self.race_steps = length.race_steps

    def take_step(self, report: StepReport) -> Step:
        """A step that its worker reports. NaN and infinity are scores."""
        self.steps.append(report.step)
        self.seconds, self.fit_seconds = report.seconds, report.fit_seconds
        self.step_seconds.append(report.seconds)
        self.worker = report.worker
        return report.step

    @property
    def last_step(self) -> float:
        return self.steps[-1].step if self.steps else -math.inf
