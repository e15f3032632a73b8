"""The columns that a definition names, before anything is paid for: whether they are there, and can be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import numpy as np
import pandas as pd

from tuning.basics.wording import did_you_mean, name_list, separator_hint
from tuning.data.customers import Customers, too_large
from tuning.data.formats.memory_frame import FrameSource
from tuning.data.keyed_tables import TablePart, find_tables
from tuning.data.sampling import LOOKED_AT, SampledFrames
from tuning.data.table_source import TableSource
from tuning.definition.customer_limits import Extent
from tuning.definition.definition import Definition
from tuning.errors import CustomerError, DataError, NotLookedAtError, PlanError
from tuning.notes import Note, PlanCode
from tuning.preprocessing.kinds import TEXT, Values
from tuning.preprocessing.notations import seeming
from tuning.preprocessing.roles import check_predictions, read_groups, read_moments, read_weights

MOST_ROWS, MOST_COLUMNS = 2000, 50  # of a customer, looked at for odd text
MOST_LOOKED_AT = 200  # customers, when the first ones do not have a column


def check_columns(definition: Definition, customers: Customers, frames: SampledFrames) -> list[Note]:
    """Return notes on columns that only some customers have; `PlanError` names one that none has.

    Looks at the headers of the largest customers; with `prepare`, at what it gives back for them, since it may make a
    column. `DataError` when none of them can be read. frames: those of `sample_frames`.
    """
    named = _keys_by_column(definition)
    if definition.objective is not None or not named:
        return []
    found: Counter[str] = Counter()
    unread: list[str] = []
    looked = with_features = 0
    for names in _headers(definition, customers, frames):
        if isinstance(names, NotLookedAtError):
            continue
        if isinstance(names, CustomerError):
            unread.append(str(names))
            if len(unread) >= MOST_LOOKED_AT:
                break
            continue
        found.update(dict.fromkeys(names, 1))
        with_features += bool(_features(definition, names))
        looked += 1
        all_seen = all(name in found for name in named)
        if looked >= MOST_LOOKED_AT or (all_seen and (looked >= LOOKED_AT or definition.prepare is not None)):
            break
    if not looked:
        if unread:
            raise DataError(
                f"data: no customer can be read, of {len(unread)} looked at. Correct `data`, `prepare`, `encoding` or "
                f"`csv`. The first: {unread[0]}"
            )
        return []
    for name, key in named.items():
        if name not in found:
            where = "the table has no" if definition.by and looked == 1 else "no customer has a"
            hint = did_you_mean(name, found)
            raise PlanError(
                f"{key}: {where} column {name!r}.{hint} There are {name_list(found) or 'none'}.{separator_hint(found)}"
            )
    if not with_features and (definition.drop or definition.features is not None):
        raise PlanError(
            f"features: nothing is left to predict {definition.target!r} from. The columns are {name_list(found)}; "
            f"{'`features` names none of them' if definition.features is not None else _taken(definition, found)}."
        )
    return [
        PlanCode.COLUMN_MISSING(name, key=key, lacking=looked - found[name], customers=looked)
        for name, key in named.items()
        if found[name] < looked
    ]


def _keys_by_column(definition: Definition) -> dict[str, str]:
    """Column -> the key that names it; key columns have been found already."""
    return {name: key for key, names in definition.named_columns.items() if key != "by" for name in names}


def _features(definition: Definition, names: Iterable[str]) -> list[str]:
    """Return those of the columns that are left to predict from."""
    wanted = names if definition.features is None else [name for name in names if name in definition.features]
    return [name for name in wanted if name != definition.target and name not in definition.not_features]


def _taken(definition: Definition, names: Iterable[str]) -> str:
    taken = [name for name in names if name in definition.not_features]
    is_are = "is" if len(taken) == 1 else "are"
    return f"{name_list(taken)} {is_are} taken by `drop`, `by`, `weight`, `split` or `baseline`"


def _headers(
    definition: Definition, customers: Customers, frames: SampledFrames
) -> Iterator[list[str] | CustomerError]:
    """Return the columns of each customer, the largest first, or why they cannot be read."""
    if definition.prepare is not None:
        for _, frame in frames:
            yield frame if isinstance(frame, CustomerError) else [str(name) for name in frame.columns]
        return
    for source in _sources(definition, customers):
        try:
            names = source.columns()
            definition.limits.check("its table", Extent(columns=len(names)))
            yield names
        except CustomerError as error:
            yield error


def _sources(definition: Definition, customers: Customers) -> Iterator[TableSource | TablePart]:
    """Return what to look at: the source of each customer, or the parts of keyed tables."""
    data = definition.data
    if definition.by or hasattr(data, "columns"):
        for table in find_tables(data, definition.by):
            yield from table.parts(definition)
        return
    frames = data if isinstance(data, Mapping) else {}
    for position in np.lexsort((-customers.numbers("size"), too_large(customers, definition.limits))):
        customer = customers[position]
        if hasattr(frames.get(customer.id), "columns"):
            yield FrameSource(frames[customer.id])
        elif customer.files:
            yield TablePart.of_file(customer.files[0], definition)


def check_values(definition: Definition, frames: SampledFrames) -> None:
    """Raise `PlanError` where no customer looked at has weights, moments, groups or predictions that can be used.

    The first one that has them is enough; the others get their reasons in the run. frames: those of `sample_frames`.
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
    """Return the key of a column that cannot be used, and why."""
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
