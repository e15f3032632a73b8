"""What a refresh would do, per customer: found out before anything starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import median
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import amount
from tuning.champions.champion import CONSTANT, NONE, OWN, Challenger, Champion
from tuning.champions.release import REFRESH, ROWS, Release
from tuning.champions.releases import Releases
from tuning.data.customers import Customers, find_customers
from tuning.data.row_digests import ROWS as ROW_COLUMNS
from tuning.data.row_digests import rows_now
from tuning.definition.definition import Definition
from tuning.errors import RunError
from tuning.evaluation.fixed import FixedConfiguration
from tuning.planning.pool_notes import OFF
from tuning.refresh.costs import GroupWork, RefreshCosts, seconds_text
from tuning.refresh.groups import (
    BROKEN,
    CHANGED,
    GONE,
    GROUPS,
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
from tuning.refresh.notes import note_lines
from tuning.refresh.options import RefreshOptions

DOUBTFUL = 1.5  # times as much as usual is how much the rows of one customer grow that are looked at


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
        costs: of a fit and of a trial.
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
    costs: RefreshCosts

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
        if champion.answer == OWN and not self.may_stand(customer):
            return False  # whatever was found would be left aside
        grown = change.now >= (1.0 + self.options.grown) * (champion.rows_at_search or champion.rows)
        return grown or self._is_its_turn(customer, champion.searched)

    def may_stand(self, customer: str) -> bool:
        """Whether what a search finds may stand against a customer's champion: not beside another, younger one."""
        standing = self.challengers.get(customer)
        return standing is None or self.refreshes_since(standing.since) + 1 >= self.options.stand

    def _is_its_turn(self, customer: str, searched: int) -> bool:
        """Whether a customer has waited long enough since its last search. After one of all customers in a run, turns
        are spread over the refreshes that follow, so that each costs alike."""
        every = self.options.search_every
        wait = every if searched in self.refreshes else 1 + crc32(customer.encode(errors="replace")) % every
        return self.refreshes_since(searched) + 1 >= wait

    @cached_property
    def without_data(self) -> list[str]:
        """Customers with a champion and no data."""
        return [each.customer for each in self.changes.of(GONE)]

    @property
    def retired(self) -> list[str]:
        """Those of them who lose their champion."""
        return self.without_data if self.options.retire else []

    @cached_property
    def notes(self) -> dict[str, str]:
        """By customer, what is odd about its rows; that they have doubled is not where others grow nearly as much."""
        grown = self.changes.of(GROWN)
        usual = median(each.now / max(each.before, 1) for each in grown) if len(grown) > 2 else 1.0
        doubled = [each for each in grown if each.note and each.now > DOUBTFUL * usual * each.before]
        odd = [*self.changes.of(BROKEN, CHANGED), *doubled]
        return {each.customer: each.note for each in odd if each.note}

    @property
    def remembered(self) -> pa.Table:
        """The rows that the next refresh begins from: those of now, of customers that are gone those of last time."""
        gone = pa.array(self.without_data, pa.string())
        here = self.rows.filter(pc.invert(pc.is_in(self.rows["customer"], value_set=gone)))
        if self.options.retire or not len(gone):
            return here
        kept = self.before.filter(pc.is_in(self.before["customer"], value_set=gone))
        return pa.concat_tables([here, kept.replace_schema_metadata(here.schema.metadata)])

    def refreshes_since(self, number: int) -> int:
        """How many refreshes made a release after one."""
        return sum(each > number for each in self.refreshes)

    @property
    def nothing_to_do(self) -> bool:
        """Whether nobody is fitted, tuned or retired, and the rows are known."""
        return not (self.fitted or self.searched or self.retired) and ROWS in self.release.tables

    @cached_property
    def work(self) -> dict[str, GroupWork]:
        """By group of customers what is done for it, of groups for which something is."""
        fits, trials = Counter[str](), Counter[str]()
        for name in self.fitted:
            held = (self.champions.get(name), self.challengers.get(name))
            fits[self.change[name].group] += sum(each is not None and each.configuration is not None for each in held)
        for name in self.searched:
            trials[self.change[name].group] += self.definition.trials
        return {
            group: GroupWork(fits[group], trials[group], self.costs.seconds(fits[group], trials[group]))
            for group in GROUPS
            if fits[group] or trials[group]
        }

    @property
    def trains_pool(self) -> bool:
        """Whether a pool is wanted and may be a member of somebody's model."""
        known = [self.champions[name].configuration for name in self.fitted]
        members = any(FixedConfiguration.from_json(text).pooled for text in known if text is not None)
        return self.definition.pool != OFF and bool(self.searched or members)

    def to_dict(self) -> dict[str, object]:
        """It as plain values."""
        return {
            "release": self.release.number,
            "groups": self.changes.counts,
            "work": {group: asdict(each) for group, each in self.work.items()},
            "notes": list(self.changes.notes),
            "fit": sorted(self.fitted),
            "search": sorted(self.searched),
            "retire": sorted(self.retired),
            "customers": self.notes,
        }

    def describe(self) -> str:
        """For a terminal."""
        lines = [f"release {self.release.number} is in force", *group_lines(self.changes, self.served, self.work)]
        lines += [*(f"note: {note}" for note in self.changes.notes), *note_lines(self.notes)]
        if self.nothing_to_do:
            return "\n".join([*lines, "Nothing is to be done."])
        later = "more where a champion loses more on new rows than it promised, or cannot serve them"
        fits = f"to fit again: {amount(len(self.fitted), 'customer')}, with the champion's configuration, one fit each"
        each = f"{amount(self.definition.trials, 'trial')} each"
        search = f"to search for a better model: {amount(len(self.searched), 'customer')}, {each}; {later}"
        whole = [each.core_seconds for each in self.work.values()]
        known = [each for each in whole if each is not None]
        about = [f"in all about {seconds_text(sum(known))}, as long as earlier fits and trials took"] * bool(known)
        everyone = amount(len(self.customers), "customer")
        pool = [f"before that, the pool of the rows of {everyone} is trained, which no time below includes"]
        retire = [f"to retire: {amount(len(self.retired), 'customer')}"] * bool(self.retired)
        return "\n".join([*lines, fits, search, *pool * self.trains_pool, *retire, *about])


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
        costs=RefreshCosts.of(releases),
    )


def _refreshes(releases: Releases) -> Iterator[int]:
    """The numbers of releases that refreshes have made; of those that are not what was written nobody knows it."""
    for number in releases.numbers():
        with suppress(RunError):
            if releases.at(number).why == REFRESH:
                yield number
