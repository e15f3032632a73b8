"""Promoting a run: its winners serve, as a release of a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tuning.records.ownership import begun_term
from tuning.runs.results import RunResult
from tuning.serving.champion import HERE, NONE, Champion, same_configuration, table_of, to_json
from tuning.serving.release import PROMOTE, Release
from tuning.serving.releases import Releases
from tuning.serving.winners import RunWinners


@dataclass(frozen=True)
class Promoted:
    """What came of it.

    Attributes:
        release: that is in force afterwards.
        new: whether it was made for this; else all was so already.
        answers: customers by what answers them.
        replaced: customers whose champion is another one than before.
        added: customers who had none.
    """

    release: Release
    new: bool
    answers: Mapping[str, int]
    replaced: int
    added: int


def promote_run(result: RunResult, releases: Releases, *, allow_code: bool = False) -> Promoted:
    """Make a release in which a run's winners serve; customers that it does not have stay as they are.

    The same again makes no release.

    Raises:
        PlanError: the run has no models of customers.
        RunError: others work on it, or a file of it is not what it has written.
        RunOwnedError: somebody else has made a release meanwhile.

    allow_code: as of `RunResult.model`.
    """
    number, before = releases.next_number(), releases.newest()
    run = RunWinners(result, releases, number, allow_code)
    champions = releases.state(before)
    after = dict(champions)
    for winner in run.of([*result]):
        now = champions.get(winner.customer)
        if now is None:
            after[winner.customer] = winner
        elif winner.answer != NONE and not _same_model(now, winner):
            since = now.since if same_configuration(now, winner) else number
            after[winner.customer] = replace(winner, since=since)
    others, new_others = None if before is None else releases.others(before), run.of_others()
    if new_others is not None and (others is None or not _same_model(others, new_others)):
        others = new_others
    kept = None if others is None else to_json(others)
    release = before
    made = before is None or after != champions or kept != before.others
    if made:
        begun_term(result.directory)  # it is still there
        parent = None if before is None else before.number
        draft = Release(number, parent, PROMOTE, others=kept, run=releases.reference(result.directory))
        release = releases.place(draft, table_of(after.values()))
    assert release is not None
    return Promoted(
        release=release,
        new=made,
        answers=Counter(champion.answer for champion in after.values()),
        replaced=sum(champions.get(name) not in (None, champion) for name, champion in after.items()),
        added=len(after) - len(champions),
    )


def _same_model(one: Champion, other: Champion) -> bool:
    """Return whether nothing is new. An answer that no run has is written anew each time, so its file tells nothing."""
    if one.run == other.run == HERE:
        same = ("answer", "configuration", "rows", "digest", "reason")
        return all(getattr(one, name) == getattr(other, name) for name in same)
    return (one.answer, one.model_sha256) == (other.answer, other.model_sha256)
