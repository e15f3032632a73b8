"""Which customers have new rows, and what a week's data looks like as a whole.

What the last release's models have learned from is compared with what is there now, row by row, as
`tuning.data.row_digests` knows them. The order of rows and columns, files and formats change nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import amount
from tuning.refresh.costs import GroupWork
from tuning.refresh.odd_weeks import odd_week_notes

#: Same rows, and nothing else is another one either: nothing is done.
UNCHANGED = "unchanged"
#: All rows of last time are there, and others.
GROWN = "grown"
#: Some rows of last time are missing, or are other ones now.
CHANGED = "changed"
#: Same rows, but another definition, other code or libraries.
OUTDATED = "outdated"
#: No champion before.
NEW = "new"
#: A champion, and no data any more.
GONE = "gone"
#: A champion that is not its own model: last time none was found.
MODELLESS = "without a model before"
#: A champion of whose rows nothing is remembered.
UNKNOWN = "not looked at before"
#: Data that cannot be read; the champion stays.
BROKEN = "broken"
WORD_ROWS = 50  # rows: with more, nobody's rows double from one refresh to the next without a word
GROUPS = (UNCHANGED, GROWN, CHANGED, OUTDATED, NEW, GONE, MODELLESS, UNKNOWN, BROKEN)


@dataclass(frozen=True)
class Served:
    """The customers of the last release.

    Attributes:
        customers: all of its champions' ids.
        modelless: those whose champion is not a model of their own.
        differs: what is another one since, beside rows, such as `code` or `libraries`.
    """

    customers: Collection[str]
    modelless: Collection[str] = ()
    differs: Sequence[str] = ()


@dataclass(frozen=True)
class CustomerChange:
    """What has become of a customer's rows.

    Attributes:
        customer: its id.
        group: one of `GROUPS`.
        before: rows that its champion has learned from.
        now: rows with a target that are there.
        added: rows that were not there before.
        missing: rows of last time that are not there any more, or are other ones.
        repeated: of the added ones, copies of rows that were there before.
        reason: why its data cannot be read; empty where it can.
    """

    customer: str
    group: str
    before: int
    now: int
    added: int
    missing: int
    repeated: int
    reason: str = ""

    @property
    def is_other_data(self) -> bool:
        """Whether more than half of its rows of last time are missing or altered: its new rows may be the same ones
        with other values, so they say nothing about models that have learned from these."""
        return 2 * self.missing > self.before

    @property
    def note(self) -> str:
        """What somebody should look at; empty of what weeks usually bring."""
        if self.group == BROKEN:
            return self.text
        if self.group == GROWN and self.added >= self.before >= WORD_ROWS and self.repeated < self.added / 2:
            return f"it has {amount(self.now, 'row')}, and had {self.before} last time: two customers may have one id"
        if self.group != CHANGED or 2 * self.missing < self.before:
            return ""
        lost = f"{self.missing} of its {amount(self.before, 'row')} of last time are missing or altered"
        return (
            f"{lost}, so no model was judged by its {self.added} new ones"
            if self.is_other_data and self.added
            else lost
        )

    @property
    def text(self) -> str:
        """It as a sentence."""
        if self.group == BROKEN:
            return f"broken: {self.reason} What is known of its rows is that of last time."
        if self.group in (NEW, UNKNOWN):
            return f"{self.group}: {amount(self.now, 'row')}"
        if self.group == GONE:
            return f"gone: its {amount(self.before, 'row')} of last time are not there any more"
        said = [f"{self.added} new" * (self.added > 0), f"{self.missing} missing or altered" * (self.missing > 0)]
        of = f"{amount(self.before, 'row')} before, {self.now} now"
        copies = f"; {self.repeated} of the new ones are copies of rows that were there" * (self.repeated > 0)
        return f"{self.group}: {', '.join([of, *filter(None, said)])}{copies}"


@dataclass(frozen=True)
class RowChanges:
    """All customers' changes, in the order of their ids. notes: what is odd about these rows as a whole."""

    table: pa.Table
    notes: tuple[str, ...]

    def of(self, *groups: str) -> list[CustomerChange]:
        """The customers of some groups; all of them without any."""
        table = self.table
        if groups:
            table = table.filter(pc.is_in(table["group"], value_set=pa.array(groups, pa.string())))
        return [CustomerChange(**row) for row in table.to_pylist()]

    @property
    def counts(self) -> dict[str, int]:
        """How many customers each group has, without empty ones."""
        found = {each["values"]: each["counts"] for each in pc.value_counts(self.table["group"]).to_pylist()}
        return {group: found[group] for group in GROUPS if group in found}


def row_changes(before: pa.Table, now: pa.Table, customers: Sequence[str], served: Served) -> RowChanges:
    """What has become of each customer's rows since the last release.

    Args:
        before: the rows that its models have learned from, by `tuning.data.row_digests.ROWS`; empty where none were
            remembered. Both must be of one definition of columns.
        now: those that are there.
        customers: who is there now, also without any row.
        served: the last release's customers.
    """
    ids = pa.array(sorted({*customers, *served.customers}), pa.string())
    old, new = _Totals.of(before, ids), _Totals.of(now, ids)
    differ = (old.rows != new.rows) | (old.digests != new.digests)
    added, missing, repeated = (np.zeros(len(ids), dtype=np.int64) for _ in range(3))
    both = differ & old.known & new.known
    one = differ & ~both
    added[one], missing[one] = new.rows[one], old.rows[one]
    _count_differences(_hashes(before, ids, both), _hashes(now, ids, both), added, missing, repeated)
    is_here, was_served, had_none = (
        np.asarray(pc.is_in(ids, value_set=pa.array(list(each), pa.string())))
        for each in (customers, served.customers, served.modelless)
    )
    group = np.full(len(ids), OUTDATED if served.differs else UNCHANGED, dtype=object)
    group[added > 0] = GROWN
    group[missing > 0] = CHANGED
    group[~old.known] = UNKNOWN
    group[had_none] = MODELLESS
    group[~was_served] = NEW
    reasons = _reasons(now, ids)
    broken = np.asarray(pc.greater(pc.utf8_length(reasons), 0))
    group[broken] = BROKEN
    group[~is_here] = GONE
    names = ("customer", "group", "before", "now", "added", "missing", "repeated", "reason")
    columns = [ids, pa.array(group, pa.string()), old.rows, new.rows, added, missing, repeated, reasons]
    table = pa.table(dict(zip(names, columns, strict=True)))
    return RowChanges(
        table, tuple(odd_week_notes(table.filter(pa.array(old.known & was_served & ~broken)), before, now))
    )


def group_lines(changes: RowChanges, served: Served, work: Mapping[str, GroupWork]) -> list[str]:
    """A sentence for each group that has customers. work: what is done for it, by group."""
    found = []
    for group, count in changes.counts.items():
        rows = changes.table.filter(pc.equal(changes.table["group"], group))
        added, missing, now = (pc.sum(rows[name]).as_py() for name in ("added", "missing", "now"))
        said = {
            UNCHANGED: "same rows, definition, code and libraries",
            GROWN: f"{amount(added, 'new row')}, and all of last time",
            CHANGED: f"{amount(missing, 'row')} of last time missing or altered, {added} new",
            OUTDATED: f"same rows, but the last release was made with other {', '.join(served.differs)}",
            NEW: f"{amount(now, 'row')}, no champion yet",
            GONE: "no data any more; each keeps its champion",
            MODELLESS: f"{amount(now, 'row')}; last time no model was found",
            BROKEN: "data that cannot be read; each keeps its champion",
            UNKNOWN: f"{amount(now, 'row')}; it is not remembered which ones their champions have learned from",
        }[group]
        done = f": {work[group].text}" if group in work else ""
        found.append(f"{group}: {amount(count, 'customer')} ({said}){done}")
    return found


@dataclass(frozen=True)
class _Totals:
    """(n,) of each customer: whether anything is remembered, its rows, and the sum of their hashes."""

    known: np.ndarray
    rows: np.ndarray
    digests: np.ndarray

    @classmethod
    def of(cls, table: pa.Table, ids: pa.Array) -> _Totals:
        places = _places(table, ids)
        use = places >= 0
        known, rows = np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=np.int64)
        digests = np.zeros(len(ids), dtype=np.uint64)
        known[places[use]] = True
        np.add.at(rows, places[use], table["rows"].to_numpy()[use])
        np.add.at(digests, places[use], table["digest"].to_numpy()[use])
        return cls(known, rows, digests)


def _reasons(now: pa.Table, ids: pa.Array) -> pa.Array:
    """(n,) why each customer's data cannot be read, empty where it can."""
    told = now.filter(pc.is_valid(now["reason"])) if "reason" in now.column_names else now.slice(0, 0)
    if not told.num_rows:
        return pa.array([""] * len(ids), pa.string())
    place = pc.index_in(ids, value_set=told["customer"].combine_chunks())
    return pc.fill_null(told["reason"].combine_chunks().take(place), "")


def _places(table: pa.Table, ids: pa.Array) -> np.ndarray:
    """(rows,) the customer of each row of a table, -1 for others."""
    found = pc.index_in(table["customer"], value_set=ids).fill_null(-1).combine_chunks()
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def _hashes(table: pa.Table, ids: pa.Array, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(customer of each row, its hash) of the wanted customers."""
    places = _places(table, ids)
    use = np.r_[wanted, False][places]
    each = table["each"].filter(pa.array(use)).combine_chunks()
    return np.repeat(places[use], table["rows"].to_numpy()[use]), each.flatten().to_numpy()


def _count_differences(
    before: tuple[np.ndarray, np.ndarray],
    now: tuple[np.ndarray, np.ndarray],
    added: np.ndarray,
    missing: np.ndarray,
    repeated: np.ndarray,
) -> None:
    """Count for each customer what two lists of rows do not share; equal rows count as often as they are there."""
    customers, hashes = (np.concatenate(pair) for pair in zip(before, now, strict=True))
    if not len(customers):
        return
    is_now = np.arange(len(customers)) >= len(before[0])
    order = np.lexsort((hashes, customers))
    customers, hashes, is_now = customers[order], hashes[order], is_now[order]
    starts = np.flatnonzero(np.r_[True, (customers[1:] != customers[:-1]) | (hashes[1:] != hashes[:-1])])
    here = np.add.reduceat(is_now.astype(np.int64), starts)
    there = np.add.reduceat((~is_now).astype(np.int64), starts)
    more = np.maximum(here - there, 0)
    np.add.at(added, customers[starts], more)
    np.add.at(missing, customers[starts], np.maximum(there - here, 0))
    np.add.at(repeated, customers[starts], np.where(there > 0, more, 0))
