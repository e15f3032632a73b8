"""What a refresh would do, per customer, and the studies that its run is made of.

It is found out before anything starts, without reading rows that are as before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, cast
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.columnar import ArrowColumn
from tuning.basics.wording import amount
from tuning.data.customers import Customers, find_customers
from tuning.data.fingerprints import digested, stamped
from tuning.definition.definition import Definition
from tuning.errors import RunError
from tuning.evaluation.fixed import FixedConfiguration
from tuning.planning.plan_notes import OFF
from tuning.planning.studies import Known
from tuning.records.schema import Config
from tuning.runs.plan_file import plain
from tuning.runs.resume import MAY_CHANGE
from tuning.serving.champion import CONSTANT, NONE, OWN, POOL, Champion
from tuning.serving.release import REFRESH, Release
from tuning.serving.releases import Releases
from tuning.study.warm_start import known_entries

#: Rules of promotion: the winner of a search serves if it is better on the hold-out, whatever it is, or not at all.
BETTER, ALWAYS, NEVER = "better", "always", "never"
RULES = (BETTER, ALWAYS, NEVER)


@dataclass(frozen=True)
class RefreshOptions:
    """How champions are kept.

    Attributes:
        promotion: one of `RULES`.
        min_gain: of `BETTER`: by how much a winner must be better, in % of an error, else as a difference of scores.
        search_every: refreshes after which a customer with other rows is searched for again.
        grown: share by which its data has grown since its last search, from which it is searched for again.
        retire: whether customers that are not in the data any more lose their champions.
    """

    promotion: str = BETTER
    min_gain: float = 0.0
    search_every: int = 4
    grown: float = 0.25
    retire: bool = False


@dataclass(frozen=True)
class Changes:
    """Whose rows are other ones than those that its champion has learned from.

    customers: all that there are, as they are now; of the changed ones with digests. changed, new, gone: ids.
    """

    customers: Customers
    changed: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]

    @property
    def unchanged(self) -> int:
        """How many have the same rows."""
        return len(self.customers) - len(self.changed) - len(self.new)


def find_changes(definition: Definition, served: pa.Table) -> Changes:
    """Compare the customers of a definition with those of a release's table.

    A file with the stamp of then (its time and size) is not opened. served: the table.
    """
    customers = stamped(find_customers(definition))
    ids = customers.texts("id")
    places = pc.index_in(ids, value_set=served["customer"].combine_chunks())
    known, then = np.asarray(places.is_valid()), served.select(["stamp", "digest"]).take(places)
    stamp, digest = (pc.fill_null(column.combine_chunks(), "") for column in then.columns)
    same = np.asarray(pc.and_(pc.equal(customers.texts("stamp"), stamp), pc.not_equal(stamp, "")))
    looked_at = np.flatnonzero(known & ~same)
    now = digested(definition, customers.take(looked_at))
    other = looked_at[np.asarray(pc.not_equal(now.texts("digest"), digest.take(pa.array(looked_at))))]
    digests = np.full(len(customers), "", dtype=object)
    digests[looked_at] = now.texts("digest").to_pylist()
    return Changes(
        customers=customers.with_columns(digest=ArrowColumn(pa.array(digests, pa.string()))),
        changed=tuple(ids.take(pa.array(other)).to_pylist()),
        new=tuple(ids.filter(pa.array(~known)).to_pylist()),
        gone=tuple(served["customer"].filter(pc.invert(pc.is_in(served["customer"], ids))).to_pylist()),
    )


@dataclass(frozen=True)
class RefreshPlan:
    """Who is fitted or searched for again.

    Attributes:
        release: that is in force. number: of the one that is made.
        champions: of the release, by customer.
        refreshes: numbers of the releases that refreshes have made.
    """

    definition: Definition
    options: RefreshOptions
    release: Release
    number: int
    champions: Mapping[str, Champion]
    changes: Changes
    refreshes: tuple[int, ...]

    @cached_property
    def fitted(self) -> list[str]:
        """Customers with other rows than before, whose configuration is fitted again."""
        held = ((name, self.champions[name]) for name in self.changes.changed)
        return [name for name, each in held if each.answer in (OWN, CONSTANT) and each.configuration is not None]

    @cached_property
    def searched(self) -> list[str]:
        """Customers who are searched for: new ones, and those with other rows whose search is old, or found nothing."""
        there = self.changes.customers
        sizes = dict(zip(there.texts("id").to_pylist(), there.numbers("size").tolist(), strict=True))
        return [*self.changes.new, *(name for name in self.changes.changed if self._due(name, sizes[name]))]

    def _due(self, customer: str, size: int) -> bool:
        champion = self.champions[customer]
        if champion.searched is None or champion.answer in (NONE, POOL):
            return True
        if champion.answer == OWN and self.options.promotion == NEVER:
            return False  # whatever was found would be left aside
        grown = size >= (1.0 + self.options.grown) * (champion.searched_size or size)
        return grown or self._is_its_turn(customer, champion.searched)

    def _is_its_turn(self, customer: str, searched: int) -> bool:
        """Return whether a customer has waited long enough since its last search. After one of all customers in a run,
        turns are spread over the refreshes that follow, so that each costs alike."""
        every = self.options.search_every
        wait = every if searched in self.refreshes else 1 + crc32(customer.encode(errors="replace")) % every
        return sum(each > searched for each in self.refreshes) + 1 >= wait

    @property
    def retired(self) -> tuple[str, ...]:
        """Customers who lose their champion."""
        return self.changes.gone if self.options.retire else ()

    @property
    def nothing_to_do(self) -> bool:
        """Whether nobody is fitted, searched for or retired."""
        return not (self.fitted or self.searched or self.retired)

    @property
    def trains_pool(self) -> bool:
        """Whether a pool is wanted and may be a member of somebody's model."""
        known = [self.champions[name].configuration for name in self.fitted]
        members = any(FixedConfiguration.from_json(text).pooled for text in known if text is not None)
        return self.definition.pool != OFF and bool(self.searched or members)

    def to_dict(self) -> dict[str, object]:
        """Return it as plain values."""
        return {
            "release": self.release.number,
            "unchanged": self.changes.unchanged,
            "changed": list(self.changes.changed),
            "new": list(self.changes.new),
            "gone": list(self.changes.gone),
            "fit": self.fitted,
            "search": self.searched,
            "retire": list(self.retired),
        }

    def describe(self) -> str:
        """Return it for a terminal."""
        changes, trials = self.changes, amount(self.definition.trials, "trial")
        counts = {"unchanged": changes.unchanged, "changed": len(changes.changed), "new": len(changes.new)}
        lines = [f"release {self.release.number} is in force"]
        lines += [f"{what}: {amount(count, 'customer')}" for what, count in counts.items() if count]
        if changes.gone:
            kept = "is retired" if self.retired else "keeps its champion (until --retire)"
            lines.append(f"gone: {amount(len(changes.gone), 'customer')}, each {kept}")
        if self.nothing_to_do:
            return "\n".join([*lines, "Nothing is to be done."])
        whom = amount(len(self.fitted), "customer")
        lines.append(f"to fit again: {whom}, with the configuration that serves, one fit each")
        lines.append(f"to search for: {amount(len(self.searched), 'customer')}, {trials} each")
        everyone = amount(len(changes.customers), "customer")
        return "\n".join([*lines, *[f"before that, the pool of the rows of {everyone} is trained"] * self.trains_pool])


def plan_refresh(definition: Definition, releases: Releases, options: RefreshOptions) -> RefreshPlan:
    """Return what a refresh would do. Nothing is trained."""
    number, release = releases.next_number(), releases.current()
    return RefreshPlan(
        definition=definition,
        options=options,
        release=release,
        number=number,
        champions=releases.state(release),
        changes=find_changes(definition, releases.champions(release)),
        refreshes=tuple(_refreshes(releases)),
    )


def _refreshes(releases: Releases) -> Iterator[int]:
    """Yield the numbers of releases that refreshes have made; of those that are not what was written nobody knows."""
    for number in releases.numbers():
        with suppress(RunError):
            if releases.at(number).why == REFRESH:
                yield number


#: The names of a customer's studies in the run of a refresh: what serves, a search, and what serves on the rows of that
#: search, so that its hold-out compares both.
CHAMPION, SEARCH, SCORED = "champion", "search", "scored"
Studies: TypeAlias = Mapping[str, Mapping[str, Known]]


def refresh_studies(plan: RefreshPlan) -> Studies:
    """Return what a refresh fits and searches for, by customer and name of the study; with a pool, those whose rows it
    takes have none. A search tries the configuration that serves first, so that it is not lost."""
    studies, champions = dict[str, dict[str, Known]](), plan.champions
    fixed = {
        name: FixedConfiguration.from_json(champions[name].configuration or "")
        for name in {*plan.fitted, *plan.searched}
        if name in champions and champions[name].configuration is not None
    }
    for name in plan.fitted:
        studies[name] = {CHAMPION: fixed[name]}
    for name in plan.searched:
        (of_customer := studies.setdefault(name, {}))[SEARCH] = ()
        if name in fixed and champions[name].answer == OWN:
            of_customer[SEARCH] = tuple(cast("Config", each["config"]) for each in known_entries({name: fixed[name]}))
            of_customer[SCORED] = replace(fixed[name], only_scored=True)
    if plan.trains_pool:
        return {name: {} for name in plan.changes.customers.texts("id").to_pylist()} | studies
    return studies


def run_name(plan: RefreshPlan, studies: Studies) -> str:
    """Return the name of the run's folder: the release's number and what is asked for, so that a repeat goes on."""
    same = {key: value for key, value in plain(plan.definition).items() if key not in MAY_CHANGE}
    asked = json.dumps([same, studies], sort_keys=True, default=_plain)
    return f"{plan.number:06d}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"


def _plain(value: object) -> object:
    return value.to_json() if isinstance(value, FixedConfiguration) else str(value)
