"""What a refresh would do, per customer: found out before anything starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tuning.basics.wording import amount
from tuning.champions.champion import CONSTANT, NONE, OWN, Challenger, Champion
from tuning.champions.release import REFRESH, ROWS, Release
from tuning.champions.releases import Releases
from tuning.data.customers import Customers, find_customers
from tuning.data.row_digests import ROWS as ROW_COLUMNS
from tuning.data.row_digests import rows_now
from tuning.definition.definition import Definition
from tuning.errors import RunError
from tuning.refresh.groups import (
    CHANGED,
    GROWN,
    MODELLESS,
    NEW,
    UNKNOWN,
    CustomerChange,
    RowChanges,
    Served,
    group_lines,
    row_changes,
)
from tuning.refresh.options import RefreshOptions


@dataclass(frozen=True)
class RefreshPlan:
    """Who is what, and who is fitted or tuned again.

    Attributes:
        release: that is in force. number: of the one that is made.
        customers: as they are now.
        before, rows: the tables of the rows of last time and of now.
        changes: of each customer's rows.
        champions, challengers: of the release, by customer.
        refreshes: numbers of the releases that refreshes have made.
    """

    definition: Definition
    options: RefreshOptions
    release: Release
    number: int
    customers: Customers
    before: pa.Table
    rows: pa.Table
    served: Served
    changes: RowChanges
    champions: Mapping[str, Champion]
    challengers: Mapping[str, Challenger]
    refreshes: tuple[int, ...]

    @cached_property
    def change(self) -> dict[str, CustomerChange]:
        """By customer, without those whose rows are as they were."""
        found = self.changes.of(GROWN, CHANGED, NEW, MODELLESS, UNKNOWN)
        return {each.customer: each for each in found}

    @cached_property
    def fitted(self) -> list[str]:
        """Customers whose champion's configuration is fitted again: those with other rows than before."""
        groups = (GROWN, CHANGED, UNKNOWN)
        return [
            name
            for name, each in self.change.items()
            if each.group in groups and each.now and self.champions[name].answer in (OWN, CONSTANT)
        ]

    @cached_property
    def searched(self) -> list[str]:
        """Customers who are tuned: new ones, and those with other rows whose search is old, or found no model."""
        return [name for name, each in self.change.items() if each.now and self._due(name, each)]

    def _due(self, customer: str, change: CustomerChange) -> bool:
        if change.group == NEW:
            return True
        champion = self.champions[customer]
        other = change.added or change.missing or change.group == UNKNOWN
        if not other or champion.searched is None or champion.answer == NONE:
            return bool(other)
        grown = change.now >= (1.0 + self.options.grown) * (champion.rows_at_search or champion.rows)
        return grown or self.refreshes_since(champion.searched) + 1 >= self.options.search_every

    def refreshes_since(self, number: int) -> int:
        """How many refreshes made a release after one."""
        return sum(each > number for each in self.refreshes)

    @property
    def nothing_to_do(self) -> bool:
        """Whether nobody is fitted or tuned, and the rows are known."""
        return not (self.fitted or self.searched) and ROWS in self.release.tables

    def to_dict(self) -> dict[str, object]:
        """It as plain values."""
        return {
            "release": self.release.number,
            "groups": self.changes.counts,
            "notes": list(self.changes.notes),
            "fit": sorted(self.fitted),
            "search": sorted(self.searched),
        }

    def describe(self) -> str:
        """For a terminal."""
        lines = [f"release {self.release.number} is in force", *group_lines(self.changes, self.served)]
        lines += [f"note: {note}" for note in self.changes.notes]
        if self.nothing_to_do:
            return "\n".join([*lines, "Nothing is to be done."])
        fits = f"to fit again: {amount(len(self.fitted), 'customer')}, with the champion's configuration, one fit each"
        each = f"{amount(self.definition.trials, 'trial')} each"
        return "\n".join(
            [*lines, fits, f"to search for a better model: {amount(len(self.searched), 'customer')}, {each}"]
        )


def plan_refresh(definition: Definition, releases: Releases, options: RefreshOptions) -> RefreshPlan:
    """What a refresh would do. Each file that has changed is read once, and nothing is trained."""
    number, release = releases.next_number(), releases.current()
    champions, challengers = releases.state(release)
    remembered = releases.table(release, ROWS)
    before = ROW_COLUMNS.empty_table() if remembered is None else remembered
    customers = find_customers(definition)
    rows = rows_now(definition, customers, remembered)
    served = Served(tuple(champions), tuple(name for name, each in champions.items() if each.answer == NONE))
    return RefreshPlan(
        definition=definition,
        options=options,
        release=release,
        number=number,
        customers=customers,
        before=before,
        rows=rows,
        served=served,
        changes=row_changes(before, rows, customers.texts("id").to_pylist(), served),
        champions=champions,
        challengers=challengers,
        refreshes=tuple(_refreshes(releases)),
    )


def _refreshes(releases: Releases) -> Iterator[int]:
    """The numbers of releases that refreshes have made; of those that are not what was written nobody knows it."""
    for number in releases.numbers():
        with suppress(RunError):
            if releases.at(number).why == REFRESH:
                yield number
