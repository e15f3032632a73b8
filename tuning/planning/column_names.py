"""The columns that a definition names are looked for in the headers of files, before anything is paid for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

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

MOST_LOOKED_AT = 200  # customers, when the first ones do not have a column


def check_columns(definition: Definition, customers: Customers, frames: SampledFrames) -> list[Note]:
    """Return notes on columns that only some customers have; `PlanError` names one that none has.

    Looks at the headers of the largest customers; with `prepare`, at what it gives back for them, since it may make a
    column. `DataError` when none of them can be read. frames: as of `sample_frames`.
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
    """Those of the columns that are left to predict from."""
    wanted = names if definition.features is None else [name for name in names if name in definition.features]
    return [name for name in wanted if name != definition.target and name not in definition.not_features]


def _taken(definition: Definition, names: Iterable[str]) -> str:
    taken = [name for name in names if name in definition.not_features]
    is_are = "is" if len(taken) == 1 else "are"
    return f"{name_list(taken)} {is_are} taken by `drop`, `by`, `weight`, `split` or `baseline`"


def _headers(
    definition: Definition, customers: Customers, frames: SampledFrames
) -> Iterator[list[str] | CustomerError]:
    """The columns of each customer, the largest first, or why they cannot be read."""
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
    """What to look at: the source of each customer, or the parts of keyed tables."""
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
