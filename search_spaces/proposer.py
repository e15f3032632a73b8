"""What an algorithm does for one study: propose a configuration, hear how its trial ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from search_spaces.values import Configuration, Point

OutcomeState = Literal["complete", "stopped", "failed"]
#: What a trial reported: the metric, `training_iteration`, and what else its scheduler adds.
Result: TypeAlias = Mapping[str, Any]


class Outcome(NamedTuple):
    """The end of a trial.

    Attributes:
        state: "complete" with its full budget, "stopped" before it by the scheduler, or "failed" (an error,
            or no finite value).
        value: the objective in the metric's own units; None if failed.
        step: how far the trial came, in steps; 0 if unknown.
    """

    state: OutcomeState
    value: float | None
    step: int


FAILED = Outcome("failed", None, 0)


def read_outcome(result: Result | None, metric: str, error: bool) -> Outcome:
    """Return the outcome in the result of `on_trial_complete`; a missing or non-finite objective is a failure.

    A result with a true `stopped` says that the scheduler ended the trial early; without it the trial is
    complete.
    """
    result = result or {}
    try:
        step = int(result.get("training_iteration") or 0)
        value = float(result[metric])
    except (KeyError, TypeError, ValueError, OverflowError):
        return FAILED
    if error or not math.isfinite(value):
        return Outcome("failed", None, step)
    return Outcome("stopped" if result.get("stopped") else "complete", value, step)


class Proposer(Protocol):
    """The part of an algorithm that differs from the others; `StudySearcher` does everything else.

    Trials are numbered from 0 in the order they were suggested. A proposer is used by one study in one
    thread, draws only from generators it made from its seed, and hands out configurations that are its
    caller's to change.
    """

    def propose(self, number: int) -> Configuration | None:
        """Return the configuration of trial `number`, inside the space; None when there will never be another one."""

    def adopt(self, number: int, config: Point) -> None:
        """Trial `number` evaluates a point that was given, not proposed."""

    def learn(self, number: int, outcome: Outcome) -> None:
        """Trial `number` ended; called at most once per trial, for failed ones too."""

    def remember(self, config: Point, value: float) -> None:
        """A point whose score is known from before this study; not a trial."""


class RungProposer(Proposer, Protocol):
    """A proposer that also learns from intermediate results."""

    def progress(self, number: int, outcome: Outcome, result: Result) -> None:
        """Trial `number` has reported an intermediate result."""
