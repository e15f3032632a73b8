"""The claim: in one transaction a run is chosen, becomes running, and gets its slots, so that nobody else has them."""

from __future__ import annotations

from sqlalchemy import Connection, func, or_, select

from tuning.service.database.connection import Database
from tuning.service.database.runs import SubmittedRun, change, one
from tuning.service.database.tables import RUNS, SLOT_USES
from tuning.service.queue.quotas import Used
from tuning.service.queue.shares import DAY_S, NextRun, Shares, SlotUse, Waiting
from tuning.service.settings import ServiceSettings
from tuning.service.states import RunState


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


def places(database: Database, settings: ServiceSettings, total: int, now: float) -> dict[str, int]:
    """The place of each queued run, of all teams; 1 is next."""
    with database.read() as connection:
        return Shares(settings, total, recent_uses(connection, now), now).places(waiting_runs(connection))


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
    columns = (RUNS.c.id, RUNS.c.team, RUNS.c.priority, RUNS.c.submitted, RUNS.c.slots_asked, RUNS.c.not_before)
    return [Waiting(*row) for row in connection.execute(select(*columns).where(RUNS.c.state == RunState.QUEUED))]


def _next_run(connection: Connection, settings: ServiceSettings, total: int, now: float) -> NextRun | None:
    shares = Shares(settings, total, recent_uses(connection, now), now)
    return shares.next_run(waiting_runs(connection)) if shares.free > 0 else None
