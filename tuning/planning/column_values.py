"""Columns are read of some customers, before anything is paid for: weights, predictions, what splits the rows, and odd
text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pandas as pd

from tuning.data.sampling import SampledFrames
from tuning.definition.definition import Definition
from tuning.errors import CustomerError, PlanError
from tuning.notes import Note, PlanCode
from tuning.preprocessing.kinds import TEXT, Values
from tuning.preprocessing.notations import seeming
from tuning.preprocessing.roles import check_predictions, read_groups, read_moments, read_weights

MOST_ROWS, MOST_COLUMNS = 2000, 50  # of a customer, looked at for odd text


def check_values(definition: Definition, frames: SampledFrames) -> None:
    """Raise `PlanError` where no customer looked at has weights, moments, groups or predictions that can be used.

    The first one that has them is enough; the others get their reasons in the run. frames: as of `sample_frames`.
    """
    split = definition.split
    named = (definition.weight, split.column, split.group, definition.baseline_column)
    if definition.objective is not None or not any(named):
        return
    refused: dict[str, list[str]] = {}
    for customer, frame in frames:
        if isinstance(frame, CustomerError):
            continue
        found = _refusal(definition, frame)
        if found is None:
            return
        refused.setdefault(found[0], []).append(f"Customer {customer.id!r}: {found[1]}")
    if len(refused) == 1:
        ((key, reasons),) = refused.items()
        raise PlanError(f"{key}: usable for no customer, of {len(reasons)} looked at. {reasons[0]}")


def _refusal(definition: Definition, frame: pd.DataFrame) -> tuple[str, str] | None:
    """The key whose column cannot be used, and why."""
    split, target = definition.split, definition.target
    roles: dict[str, tuple[str | None, Callable[[pd.Series], object]]] = {
        "weight": (definition.weight, read_weights),
        "split.column": (split.column, partial(read_moments, dates=definition.dates)),
        "split.group": (split.group, read_groups),
        "baseline.column": (definition.baseline_column, check_predictions),
    }
    rows = frame[frame[target].notna()] if target in frame.columns else frame
    for key, (name, read) in roles.items():
        try:
            if name in frame.columns:
                read(rows[name])
        except CustomerError as error:
            return key, str(error)
    return None


def odd_text_notes(definition: Definition, frames: Mapping[str, pd.DataFrame]) -> Iterator[Note]:
    """Return a note for each feature with text that seems to be numbers or dates, in the first rows of customers."""
    left_out = (definition.target, *definition.not_features)
    found: dict[tuple[str, Note], int] = {}
    for frame in frames.values():
        there = frame.columns if definition.features is None else definition.features
        for name in [each for each in there if each in frame.columns and each not in left_out][:MOST_COLUMNS]:
            values = Values(frame[name][:MOST_ROWS], definition.dates)
            if values.kind(None) == TEXT and (said := seeming(values.texts()[1])):
                found[name, said] = found.get((name, said), 0) + 1
    for (name, said), customers in found.items():
        yield PlanCode.TEXT_LIKE_VALUES(name, what=said, customers=customers, looked_at=len(frames))
