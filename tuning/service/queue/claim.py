"""The claim: in one transaction a run is chosen, becomes running, and gets its slots, so that nobody else has them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, and_, func, not_, or_, select

from tuning.service.database.connection import Database
from tuning.service.database.runs import SubmittedRun, change, one
from tuning.service.database.tables import EVENTS, RUNS, SLOT_USES
from tuning.service.queue.quotas import Used
from tuning.service.queue.shares import DAY_S, LONGEST_PAUSE_S, NextRun, Shares, SlotUse, Waiting
from tuning.service.settings import ServiceSettings
from tuning.service.states import RunState

_WAITING = (RUNS.c.id, RUNS.c.team, RUNS.c.priority, RUNS.c.submitted, RUNS.c.slots_asked, RUNS.c.not_before)
PLACES_S = 10.0  # for which places are those of before while nothing happens: what teams have used changes slowly


def claim(database: Database, settings: ServiceSettings, total: int, now: float) -> SubmittedRun | None:
    """Let the next run be running; None where none waits or has room. total: the server's slots."""
    with database.read() as connection:  # most looks find nothing, and take no writer's turn
        if _next_run(connection, settings, total, now) is None:
            return None
    with database.write() as connection:
        choice = _next_run(connection, settings, total, now)
        if choice is None:
            return None
        run = one(connection, choice.run, None)
        return change(connection, run, RunState.RUNNING, now, slots=choice.slots)


class Places:
    """The place of each queued run, of all teams; 1 is next. Worked out again when something has happened to a run."""

    def __init__(self, database: Database, settings: ServiceSettings) -> None:
        self._database, self._settings = database, settings
        self._known: tuple[object, float, Mapping[str, int]] = (None, 0.0, {})

    def at(self, now: float, total: int) -> Mapping[str, int]:
        """total: the server's slots."""
        with self._database.read() as connection:
            news = connection.execute(select(func.max(EVENTS.c.id))).scalar(), total
            known, since, found = self._known
            if news != known or not 0 <= now - since < PLACES_S:
                shares = Shares(self._settings, total, recent_uses(connection, now), now)
                found = shares.places(waiting_runs(connection))
                self._known = news, now, found
        return found


def used_by(connection: Connection, team: str, now: float) -> Used:
    """What a team has of its quotas."""
    of_team = select(func.coalesce(func.sum(RUNS.c.bytes), 0)).where(RUNS.c.team == team)
    queued = select(func.count()).where(RUNS.c.team == team, RUNS.c.state == RunState.QUEUED)
    return Used(
        queued=connection.execute(queued).scalar_one(),
        uses=[use for use in recent_uses(connection, now) if use.team == team],
        bytes=int(connection.execute(of_team).scalar_one()),
    )


def recent_uses(connection: Connection, now: float) -> list[SlotUse]:
    """Slots that were used in the last day, or are."""
    since = or_(SLOT_USES.c.until.is_(None), SLOT_USES.c.until > now - DAY_S)
    wanted = select(SLOT_USES.c.team, SLOT_USES.c.slots, SLOT_USES.c.since, SLOT_USES.c.until).where(since)
    return [SlotUse(*row) for row in connection.execute(wanted)]


def waiting_runs(connection: Connection) -> list[Waiting]:
    """The queued runs."""
    return [Waiting(*row) for row in connection.execute(select(*_WAITING).where(RUNS.c.state == RunState.QUEUED))]


def first_of_each_team(connection: Connection, now: float) -> list[Waiting]:
    """Of each team's queued runs the one that is its next, of those that may begin."""
    pauses = and_(RUNS.c.not_before > now, RUNS.c.not_before <= now + LONGEST_PAUSE_S)
    turn = (RUNS.c.priority.desc(), RUNS.c.submitted, RUNS.c.id)
    place = func.row_number().over(partition_by=RUNS.c.team, order_by=turn).label("place")
    due = select(*_WAITING, place).where(RUNS.c.state == RunState.QUEUED, not_(pauses)).subquery()
    first = select(*(due.c[column.name] for column in _WAITING)).where(due.c.place == 1)
    return [Waiting(*row) for row in connection.execute(first)]


def _next_run(connection: Connection, settings: ServiceSettings, total: int, now: float) -> NextRun | None:
    shares = Shares(settings, total, recent_uses(connection, now), now)
    return shares.next_run(first_of_each_team(connection, now)) if shares.free > 0 else None
