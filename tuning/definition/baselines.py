"""What a model is compared with, where the definition says so: a configuration, a family, a constant, predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import Field, PlainValidator

from tuning.basics.wording import shorten
from tuning.definition.complaints import KeyedError
from tuning.definition.reach import PLAIN

MEAN, COLUMN = "mean", "column"  # the constant; the only key of a mapping that is no configuration
GivenBaseline: TypeAlias = str | Mapping[str, object] | None
"""As a definition has it; None is the configuration that studies try first."""


def _baseline(value: object) -> object:
    if value is None or (isinstance(value, str) and value.strip()):
        return value
    if isinstance(value, Mapping) and value and all(isinstance(name, str) for name in value):
        return dict(value)
    raise ValueError(
        f"{shorten(repr(value))} is no baseline; {MEAN}, a model family, a configuration such as "
        f"{{model: ridge, alpha: 1}} or {{{COLUMN}: NAME}} of your own predictions is expected"
    )


Baseline: TypeAlias = Annotated[
    str | dict[str, object] | None,
    PLAIN,
    PlainValidator(_baseline, json_schema_input_type=Annotated[str | dict[str, object], Field(min_length=1)] | None),
]
"""What a definition takes."""


def column_of(baseline: GivenBaseline) -> str | None:
    """Return the column of the user's own predictions; None where the baseline is something else."""
    if not isinstance(baseline, Mapping) or set(baseline) != {COLUMN}:
        return None
    return str(baseline[COLUMN])


def configuration_of(baseline: GivenBaseline) -> Mapping[str, object] | None:
    """Return the configuration that studies try first for it; None where the baseline is no trial of its own."""
    if baseline is None or baseline == MEAN or column_of(baseline) is not None:
        return None
    return {"model": baseline} if isinstance(baseline, str) else baseline


def is_first_trial(baseline: GivenBaseline) -> bool:
    """Return whether the baseline is the trial that a study begins with, as it is by default."""
    return baseline is None or configuration_of(baseline) is not None


def baseline_name(baseline: GivenBaseline) -> str:
    """Return the name of a baseline, as it is shown.

    >>> baseline_name({"column": "predicted"}), baseline_name("ridge"), baseline_name(None)
    ('your predictions (predicted)', 'ridge at its defaults', 'the first model tried')
    """
    if baseline is None:
        return "the first model tried"
    if baseline == MEAN:
        return "a constant guess"
    if isinstance(baseline, str):
        return f"{baseline} at its defaults"
    if (column := column_of(baseline)) is not None:
        return f"your predictions ({column})"
    family = baseline.get("model")
    return "your configuration" if family is None else f"your configuration of {family}"


def check_baseline(baseline: GivenBaseline, *, compares: bool, of_objective: bool) -> None:
    """Raise `KeyedError` for a baseline that other keys of the definition rule out.

    compares: whether algorithms are compared. of_objective: whether an objective is tuned.
    """
    if baseline is None:
        return
    if compares:
        raise KeyedError(
            "baseline",
            "a comparison compares algorithms with each other, and `compare.baseline` names one of them; "
            "remove `baseline`",
        )
    column = column_of(baseline)
    if of_objective and (isinstance(baseline, str) or column is not None):
        raise KeyedError(
            "baseline",
            f"{baseline!r} is one of models, and an objective is tuned; name a configuration of its search space",
        )
    if isinstance(baseline, Mapping) and column is not None and (not isinstance(baseline[COLUMN], str) or not column):
        raise KeyedError("baseline.column", f"{baseline[COLUMN]!r} is not the name of a column")
