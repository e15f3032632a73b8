"""What the refresh that is in force has decided, as terminal and report show it."""

from __future__ import annotations

from tuning.champions.champion import rows_of
from tuning.champions.drift import DRIFTS
from tuning.champions.promotion import Decision
from tuning.champions.release import DECISIONS, REFRESH, Release
from tuning.champions.releases import Releases
from tuning.champions.rules.rule import BEATEN, PROMOTED, PROPOSED, STANDS

#: What has changed comes first.
OUTCOMES = (PROMOTED, PROPOSED, BEATEN, DRIFTS, STANDS)


def newest_decisions(releases: Releases) -> list[Decision]:
    """The decisions of the newest refresh that no rollback has undone: what has changed, then who is nearest to a
    change."""
    refreshed: Release | None = releases.current()
    while refreshed is not None and refreshed.why != REFRESH:
        whole = refreshed.customer is None
        before = (refreshed.equals if whole else None) or refreshed.parent
        refreshed = None if before is None else releases.at(before)
    table = None if refreshed is None else releases.table(refreshed, DECISIONS)
    return [] if table is None else sorted(rows_of(table, Decision), key=_place)


def _place(each: Decision) -> tuple[int, float]:
    near = -1.0 if each.e_value is None or not each.threshold else each.e_value / each.threshold
    return OUTCOMES.index(each.outcome), -near
