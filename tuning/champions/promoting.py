"""Promoting a run: its winners become the first release of a name, or stand against the champions that there are."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from tuning.champions.champion import HERE, NONE, OWN, Challenger, Champion, same_configuration, table_of
from tuning.champions.first_release import RunChampions
from tuning.champions.learned_rows import learned_rows, rows_after
from tuning.champions.release import CHALLENGERS, CHAMPIONS, OTHERS, PROMOTE, ROWS, Release, encoded_table
from tuning.champions.releases import Releases
from tuning.champions.rules.never import Never
from tuning.champions.rules.newest import Newest
from tuning.champions.rules.sure import Sure
from tuning.records.ownership import begun_term
from tuning.runs.results import RunResult

#: What becomes of customers that have a champion: the run's winner replaces it, never, or stands against it until a
#: refresh has compared the two on rows that came after.
NEWEST, NEVER, SURE = Newest.name, Never.name, Sure.name


@dataclass(frozen=True)
class Promoted:
    """What came of it.

    Attributes:
        release: that is in force afterwards.
        new: whether it was made for this; else all was so already.
        answers: customers by what answers them.
        replaced: customers whose champion is another one than before.
        added: customers who had none.
        challengers: configurations that began to stand.
    """

    release: Release
    new: bool
    answers: Mapping[str, int]
    replaced: int
    added: int
    challengers: int


def promote_run(result: RunResult, releases: Releases, promotion: str = SURE, *, allow_code: bool = False) -> Promoted:
    """Make a release of a run. The same again makes none.

    Raises:
        PlanError: the run has no models of customers.
        RunError: others work on it, or a file of it is not what it has written.
        RunOwnedError: somebody else has made a release meanwhile.

    promotion: name of a rule of `promotion_rules`, which the first release does not ask. allow_code: as of
    `RunResult.model`.
    """
    number, before = releases.next_number(), releases.newest()
    run = RunChampions(result, releases, number, allow_code)
    winners = {each.customer: each for each in run}
    champions, standing = releases.state(before)
    after, challengers = dict(champions), dict(standing)
    for name, winner in winners.items():
        now = champions.get(name)
        if now is None or now.answer == NONE:
            after[name] = now if now is not None and winner.answer == NONE else winner
        elif _same_model(now, winner):
            pass
        elif promotion == NEWEST:
            after[name] = replace(winner, since=now.since) if same_configuration(now, winner) else winner
            challengers.pop(name, None)
        elif promotion != NEVER and winner.answer == OWN and not same_configuration(now, winner):
            challengers.setdefault(name, Challenger.of(winner, number))
    changed = [name for name, champion in after.items() if champions.get(name) not in (None, champion)]
    before_and_after = ((champions, after), (standing, challengers))
    touched = {name for name in after if any(then.get(name) != now.get(name) for then, now in before_and_after)}
    tables = {CHAMPIONS: table_of(after.values(), Champion)}
    others = None if before is None else releases.others(before)
    if (others is None or promotion == NEWEST) and (new := run.of_others()) is not None:
        others = others if others is not None and _same_model(others, new) else new
    if others is not None:
        tables[OTHERS] = table_of([others], Champion)
    if challengers:
        tables[CHALLENGERS] = table_of(challengers.values(), Challenger)
    release, made = before, before is None or not _equal(before, tables)
    if release is None or made:
        remembered = None if before is None else releases.table(before, ROWS)
        tables[ROWS] = rows_after(remembered, learned_rows(result), touched)
        release = _placed(releases, result, number, before, tables)
    return Promoted(
        release=release,
        new=made,
        answers=Counter(champion.answer for champion in after.values()),
        replaced=len(changed),
        added=len(after) - len(champions),
        challengers=len(challengers.keys() - standing.keys()),
    )


def changed_customers(releases: Releases, release: Release) -> int:
    """Customers whose champion in a release is another one than in the release before, or who had none there."""
    if release.parent is None:
        return 0
    then, _ = releases.state(releases.at(release.parent))
    now, _ = releases.state(release)
    return sum(then.get(name) != champion for name, champion in now.items())


def _placed(
    releases: Releases, result: RunResult, number: int, before: Release | None, tables: Mapping[str, pa.Table]
) -> Release:
    directory, term = result.directory, result.term
    begun_term(directory)  # it is still there
    draft = Release(
        number=number,
        parent=None if before is None else before.number,
        why=PROMOTE,
        definition=hashlib.sha256(directory.read(term.definition)).hexdigest(),
        run=releases.reference(directory),
    )
    return releases.place(draft, tables)


def _equal(before: Release, tables: Mapping[str, pa.Table]) -> bool:
    return all(
        (kind in before.tables and before.tables[kind] == encoded_table(kind, tables[kind])[0])
        if kind in tables
        else kind not in before.tables
        for kind in (CHAMPIONS, CHALLENGERS, OTHERS)
    )


def _same_model(one: Champion, other: Champion) -> bool:
    """Whether nothing is new. An answer that no run has is written anew each time, so its file tells nothing."""
    if one.run == other.run == HERE:
        same = ("answer", "configuration", "rows", "rows_digest", "reason")
        return all(getattr(one, name) == getattr(other, name) for name in same)
    return (one.answer, one.model_sha256) == (other.answer, other.model_sha256)
