"""study_time: the study ends when its trials have worked for so many seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

from pydantic import Field

from schedulers.direction import Mode
from schedulers.protocols import Reason
from schedulers.stopping.rule import RuleSpec, StudyStopper


class StudyTimeSpec(RuleSpec):
    """A study's time budget; a running trial ends at its next step, protected ones run to their end.

    Attributes:
        seconds: wall time since the study's first trial started; in a resumed study the seconds of the earlier
            attempt's trials count too.
    """

    name = "study_time"
    summary = "ends the study after so many seconds"
    short = "seconds"

    seconds: float = Field(gt=0)

    def build(self, *, metric: str, mode: Mode, clock: Callable[[], float] = time.monotonic) -> StudyStopper:
        spent = Reason("study_time", self.name, {"seconds": self.seconds})
        return StudyTimeStopper(self.seconds, clock, spent)


class StudyTimeStopper(StudyStopper):
    """A stopwatch that starts when it is first asked. spent: the study's reason once its seconds are over."""

    def __init__(self, seconds: float, clock: Callable[[], float], spent: Reason) -> None:
        self._budget, self._clock, self._spent = seconds, clock, spent
        self._started: float | None = None
        self._earlier = 0.0

    def on_replay(self, seconds: float) -> None:
        self._earlier += seconds

    def study_reason(self) -> Reason | None:
        now = self._clock()
        if self._started is None:
            self._started = now
        used = now - self._started + self._earlier
        return None if used < self._budget else self._spent
