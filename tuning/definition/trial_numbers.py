"""How many trials a study has: a given number, or `auto` for one that planning finds."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, PlainValidator

from tuning.basics.wording import shorten
from tuning.definition.reach import PLAIN

AUTO = "auto"
USUAL_TRIALS = 20  # where neither the definition nor its customer's rows say another number
MOST_TRIALS = 1_000_000
GivenTrials: TypeAlias = int | Literal["auto"]
"""As a definition has it."""


def _trials(value: object) -> object:
    if value == AUTO:
        return value
    try:
        number = int(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):  # a text, NaN or infinity
        number = None
    if number is None or (isinstance(value, float) and number != value):
        raise ValueError(f"must be a whole number or {AUTO} (got {shorten(repr(value))})")
    if not 1 <= number <= MOST_TRIALS:
        rule = "at least 1" if number < 1 else f"at most {MOST_TRIALS}"
        raise ValueError(f"must be {rule} (got {value!r})")
    return number


Trials: TypeAlias = Annotated[
    GivenTrials,
    PLAIN,
    PlainValidator(_trials),
    Field(
        description="Number of trials per study, the baseline included. `auto`: a number by the task and the "
        "customer's rows where studies begin with the shipped portfolio, else 20 (docs/models.md#how-many-trials)."
    ),
]
"""What a definition takes."""


def given_trials(trials: GivenTrials) -> int:
    """The number; 0 where planning finds one for each study."""
    return trials if isinstance(trials, int) else 0


def most_trials(trials: GivenTrials) -> int:
    """The number, or the largest one that planning finds."""
    return given_trials(trials) or USUAL_TRIALS


def trials_of(trials: GivenTrials, own: int | None, auto: int) -> int:
    """Those of one study. own: what its customer has of its own. auto: what planning has found; 0 for nothing."""
    return own or given_trials(trials) or auto or USUAL_TRIALS
