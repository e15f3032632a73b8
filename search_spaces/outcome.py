"""How a trial ended, as an algorithm hears it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

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
    """The outcome in the result of `on_trial_complete`; a missing or non-finite objective is a failure.

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
