"""Observers of a run: what is written beside its records is theirs, such as its report and its copy in MLflow."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import cast

from tuning.runs.progress import ProgressState
from tuning.runs.results import RunResult


class EndState(Enum):
    """How the work on a run has ended.

    Attributes:
        DONE: all studies have ended.
        SPENT: the run's time is used up.
        STOPPED: somebody has stopped the run, and its workers have written what was finished.
        KILLED: the same, but nobody is to wait for anything now.
        FAILED: workers or machines could not go on. What is recorded is kept.
        LOST: nothing is to be written any more: the run has another owner, the storage fails, or it could not begin.
    """

    DONE = "finished"
    SPENT = "spent"
    STOPPED = "stopped"
    KILLED = "killed"
    FAILED = "failed"
    LOST = "lost"

    @property
    def word(self) -> ProgressState:
        """As the progress says it."""
        return cast(ProgressState, "stopped" if self is EndState.KILLED else self.value)

    @property
    def in_order(self) -> bool:
        """Whether the run has ended by itself."""
        return self in (EndState.DONE, EndState.SPENT)


@dataclass(frozen=True)
class RunEnd:
    """The end of the work on a run. result: what is recorded. error: what has ended it, if anything has."""

    state: EndState
    result: RunResult
    error: BaseException | None = None


class RunObserver:
    """Observes a run from its beginning to its end; by itself it does nothing.

    The process that owns the run calls each method. An observer raises no errors but those of the storage, because the
    run is whole without it. It logs a warning that says what is missing.

    at_end: what it does when the run has ended, as the progress says it; empty where that takes no time.
    """

    at_end = ""

    def began(self) -> None:
        """The run is owned and its plan is written; no worker has started yet."""

    def recorded(self, part: str) -> None:
        """A part of the run's records has been written. part: its name. The workers' reports wait for this method."""

    def ended(self, end: RunEnd) -> None:
        """The work on the run has ended. Called once, while the run is still owned."""
