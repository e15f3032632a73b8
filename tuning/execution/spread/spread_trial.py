"""A trial of a spread study between its suggestion and its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tuning.records.schema import StepRecord


@dataclass(eq=False)
class SpreadTrial:
    """A trial that has been suggested and has not ended, with what Ray's non-pausing schedulers look at."""

    number: int
    config: Mapping[str, Any]
    suggested: int
    started: float = 0.0
    status: str = "PENDING"
    scheduler: Any = None
    steps: list[StepRecord] = field(default_factory=list)
    folds: list[tuple[float, ...]] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)
    full: int = 0
    race: int = 0
    prefix: bool = False
    progress: bool = False
    fit_seconds: float = 0.0
    suggest_seconds: float = 0.0
    ended: tuple[str, str] | None = None  # state and reason, when scheduler or rule ended it
    failure: tuple[str, str | None] | None = None
    death: str | None = None  # what Tune said of its worker's last end
    checkpoint: str | None = None
    attempt: int = 1
    worker: str = ""

    @property
    def trial_id(self) -> str:
        return f"{self.number:05d}"

    def is_finished(self) -> bool:
        return self.status in ("TERMINATED", "ERROR")
