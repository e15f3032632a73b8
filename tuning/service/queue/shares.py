"""The next run and its slots: that of the team with the fewest slot-seconds per share in the last day.

Within a team priority decides, then age. The run that is next waits for room, and no other overtakes it: so a large one
is not kept waiting by many small ones. A team that has as much at once, or in a day, as it may is passed over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tuning.service.settings import ServiceSettings

DAY_S = 86_400.0
LONGEST_PAUSE_S = 300.0  # between two tries of a run; one that is further away is of a clock that was set back
TYPICAL_S = 60.0  # of a run


@dataclass(frozen=True)
class SlotUse:
    """Slots that a run has had; `until` is None while it has them. Times are seconds since 1970."""

    team: str
    slots: int
    since: float
    until: float | None = None

    def seconds(self, now: float, of_last: float = DAY_S) -> float:
        """Slot-seconds of the last `of_last` seconds; never negative, also when a clock was set back."""
        return self.slots * max(0.0, min(now, self.until or now) - max(self.since, now - of_last))


@dataclass(frozen=True)
class Waiting:
    """A queued run. slots: those it asks for; None for its team's share."""

    run: str
    team: str
    priority: int
    submitted: float
    slots: int | None = None
    not_before: float = 0.0

    @property
    def turn(self) -> tuple[int, float, str]:
        """Its place among its team's."""
        return -self.priority, self.submitted, self.run

    def due(self, now: float) -> bool:
        return not now < self.not_before <= now + LONGEST_PAUSE_S


@dataclass(frozen=True)
class NextRun:
    """The run that begins now, and its slots."""

    run: str
    slots: int


class Shares:
    """Who has had how much, and who wants more.

    total: the server's slots. uses: those of the last day at least.
    """

    def __init__(self, settings: ServiceSettings, total: int, uses: Sequence[SlotUse], now: float) -> None:
        self.settings, self.total, self.now = settings, total, now
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.at_once: Counter[str] = Counter()
        for use in uses:
            self.seconds[use.team] += use.seconds(now)
            self.at_once[use.team] += use.slots if use.until is None else 0

    @property
    def free(self) -> int:
        """Slots that nobody has; negative after a cluster has lost a node."""
        return self.total - self.at_once.total()

    def next_run(self, waiting: Iterable[Waiting]) -> NextRun | None:
        """The run that can begin; None where none waits, or the next one has no room yet."""
        first: dict[str, Waiting] = {}
        for run in waiting:
            if run.due(self.now) and (run.team not in first or run.turn < first[run.team].turn):
                first[run.team] = run
        open_teams = {*first, *(team for team, slots in self.at_once.items() if slots)}
        for team in sorted(first, key=lambda team: self._turn(team, first[team])):
            slots = self.slots_for(first[team], open_teams)
            if not self._may_have(team, slots):
                continue
            return NextRun(first[team].run, slots) if slots <= self.free else None
        return None

    def places(self, waiting: Iterable[Waiting]) -> dict[str, int]:
        """The order in which runs would begin if all took as long: 1 is next."""
        runs = sorted(waiting, key=lambda run: run.turn)
        teams, ahead = {run.team for run in runs}, Counter[str]()
        order = []
        for run in runs:
            order.append((*self._turn(run.team, run, ahead[run.team]), run.run))
            ahead[run.team] += self.slots_for(run, teams)
        return {run: place for place, (*_, run) in enumerate(sorted(order), 1)}

    def slots_for(self, run: Waiting, open_teams: Iterable[str]) -> int:
        """What a run would get: what it asks for, or its team's share, but no more than there is or it may have."""
        most = self.settings.team(run.team).quotas.slots or self.total
        if run.slots is not None:
            return max(1, min(run.slots, self.total, most))
        shares = {team: self.settings.team(team).share for team in {*open_teams, run.team}}
        return max(1, min(int(self.total * shares[run.team] / sum(shares.values())), most))

    def _may_have(self, team: str, slots: int) -> bool:
        quotas = self.settings.team(team).quotas
        if quotas.slots is not None and self.at_once[team] + slots > quotas.slots:
            return False
        return quotas.core_seconds_per_day is None or self.seconds[team] < quotas.core_seconds_per_day

    def _turn(self, team: str, first: Waiting, ahead: int = 0) -> tuple[float, float, float, str]:
        """A team's place among the teams: who has had less; then who has fewer slots now, then who waits longer.

        ahead: slots of its runs that begin before.
        """
        share = self.settings.team(team).share
        return (self.seconds[team] + ahead * TYPICAL_S) / share, self.at_once[team] / share, first.submitted, team
