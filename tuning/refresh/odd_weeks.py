"""What is odd about a week's rows as a whole, as far as rows tell it: each a sentence, for people to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import amount, name_list, some_names

ODD_SHARE = 0.1  # of the customers: so many with the same oddity are no accident of single ones
KINDS = {"number": "numbers", "date": "dates", "truth": "true or false", "text": "text"}


def odd_week_notes(known: pa.Table, before: pa.Table, now: pa.Table) -> Iterator[str]:
    """The notes on a week.

    Args:
        known: the changes of customers whose rows of last time are remembered, as of `tuning.refresh.groups`.
        before, now: rows by `tuning.data.row_digests.ROWS`.
    """
    yield from _column_notes(before, now)
    total = len(known)
    here = known.filter(pc.not_equal(known["group"], "gone"))
    with_rows = here.filter(pc.greater(here["before"], 0))
    none_left = pc.and_(pc.equal(with_rows["missing"], with_rows["before"]), pc.greater(with_rows["now"], 0))
    as_many = pc.and_(none_left, pc.equal(with_rows["now"], with_rows["before"]))
    half = pc.and_(pc.invert(none_left), pc.greater(pc.multiply(with_rows["missing"], 2), with_rows["before"]))
    copies = pc.greater(here["repeated"], 0)
    if _is_odd(count := _count(as_many), total):
        yield (
            f"{_share_of(count, total)} as many rows as last time and none that is the same: values of all rows are "
            "other ones, as after another unit, another rounding, or a column that is new, renamed or of another type"
        )
    if _is_odd(count := _count(pc.and_not(none_left, as_many)), total):
        yield f"{_share_of(count, total)} rows of which none is one of last time: this may be a file of another time"
    if _is_odd(count := _count(half), total):
        yield f"{_share_of(count, total)} fewer than half of their rows of last time: a part of the data may be missing"
    if _is_odd(count := total - len(here), total):
        gone = known.filter(pc.equal(known["group"], "gone"))
        are = "is" if count == 1 else "are"
        yield (
            f"{count:,} of {amount(total, 'customer')} {are} not there any more ({_who(gone)}): a part of the data may "
            "be missing"
        )
    if _is_odd(count := _count(copies), total):
        rows = pc.sum(here["repeated"]).as_py()
        yield (
            f"{_share_of(count, total)} {amount(rows, 'new row')} that are copies of rows that they had "
            f"({_who(here.filter(copies))}): a part of the data may have been delivered twice, or two customers may "
            "have one id"
        )


def _who(changes: pa.Table) -> str:
    return some_names(changes["customer"].to_pylist())


def _is_odd(count: int, total: int) -> bool:
    return count > 0 and count >= ODD_SHARE * total


def _count(mask: pa.ChunkedArray) -> int:
    return int(pc.sum(mask, min_count=0).as_py())


def _share_of(count: int, total: int) -> str:
    return f"{count:,} of {amount(total, 'customer')} {'has' if count == 1 else 'have'}"


def _column_notes(before: pa.Table, now: pa.Table) -> Iterator[str]:
    there, here = _kinds(before), _kinds(now)
    if not there or not here:
        return
    lost, added = sorted({*there} - {*here}), sorted({*here} - {*there})
    if lost and added:
        yield (
            f"{_named(lost)} not there any more, and {_named(added)} new: a column may have been renamed, and each "
            "row counts as another one"
        )
    elif lost:
        yield f"{_named(lost)} not there any more, and each row that had a value there counts as another one"
    elif added:
        yield f"{_named(added)} new, and each row with a value there counts as another one"
    for name in sorted({*there} & {*here}):
        old, new = (kinds[name] - {"empty"} for kinds in (there, here))
        if old and new and not old & new:
            yield f"the column {name!r} holds {_kind_names(new)}, and held {_kind_names(old)}"


def _named(names: list[str]) -> str:
    if len(names) == 1:
        return f"the column {names[0]!r} is"
    return f"the columns {name_list(names)} are"


def _kind_names(kinds: set[str]) -> str:
    return " and ".join(sorted(KINDS[kind] for kind in kinds))


def _kinds(rows: pa.Table) -> dict[str, set[str]]:
    """The columns that rows have, and of which kinds they are."""
    found: dict[str, set[str]] = {}
    for text in pc.unique(rows["columns"]).to_pylist():
        for name, kind in json.loads(text or "{}").items():
            found.setdefault(name, set()).add(kind)
    return found
