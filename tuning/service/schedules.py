"""Definitions that are submitted again and again, at the times of a cron expression in a time zone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from sqlalchemy import Connection, delete, insert, select, update

from tuning.basics.documents import Json
from tuning.basics.wording import amount, one_line, shorten
from tuning.errors import DefinitionError, MissingError, TuningError, UnavailableError
from tuning.service.database.connection import Database
from tuning.service.database.runs import Submission, new_id
from tuning.service.database.tables import RUNS, SCHEDULES
from tuning.service.states import OPEN

FIELDS = 5  # of a cron expression; a sixth would be seconds
UNUSABLE_S = 3600.0  # until a row that cannot be used is looked at again


@dataclass(frozen=True)
class Schedule:
    """A row of `tables.SCHEDULES`."""

    id: str
    team: str
    name: str
    cron: str
    time_zone: str
    definition: Json
    priority: int
    next: float
    last: float | None = None
    problem: str | None = None


def next_time(cron: str, time_zone: str, after: float) -> float:
    """The first time after a moment, in seconds since 1970; a time that a change of clocks leaves out comes after it.

    `DefinitionError` for an expression or a zone that is none.
    """
    if time_zone not in _zones():
        raise DefinitionError.about(
            "schedule", f"{shorten(time_zone, 60)!r} is not a time zone. Give one such as Europe/Berlin, or UTC."
        )
    try:
        if len(cron.split()) != FIELDS:
            raise CronSimError(f"it has {amount(len(cron.split()), 'field')}, and five are expected")
        return next(CronSim(cron, datetime.fromtimestamp(after, ZoneInfo(time_zone)))).timestamp()
    except (CronSimError, StopIteration) as error:
        raise DefinitionError.about(
            "schedule",
            f"{shorten(cron, 60)!r} is not a cron expression ({error or 'it never comes'}). Give minute, hour, day, "
            "month and day of the week, such as `0 3 * * 1` for Mondays at three.",
        ) from None


@cache
def _zones() -> frozenset[str]:
    """Return the names of the time zone database; `posix/…` is none of them, since only some machines have it."""
    return frozenset(available_timezones() - {"Factory", "localtime"})


class Schedules:
    """The schedules of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, submission: Submission, cron: str, time_zone: str, now: float) -> Schedule:
        """Submit again from now on; `DefinitionError` for an expression or a zone that is none."""
        made = Schedule(
            *(new_id(), submission.team, submission.name, cron, time_zone, dict(submission.definition)),
            *(submission.priority, next_time(cron, time_zone, now)),
        )
        with self._database.write() as connection:
            connection.execute(insert(SCHEDULES).values(vars(made)))
        return made

    def get(self, schedule: str, team: str) -> Schedule:
        """`MissingError` for another team's as for one that is not there."""
        with self._database.read() as connection:
            return _one(connection, schedule, team)

    def all(self, team: str) -> list[Schedule]:
        """A team's, by name."""
        wanted = select(SCHEDULES).where(SCHEDULES.c.team == team).order_by(SCHEDULES.c.name, SCHEDULES.c.id)
        with self._database.read() as connection:
            return [Schedule(**row) for row in connection.execute(wanted).mappings()]

    def delete(self, schedule: str, team: str) -> None:
        """Submit no more; the runs stay."""
        with self._database.write() as connection:
            _one(connection, schedule, team)
            connection.execute(delete(SCHEDULES).where(SCHEDULES.c.id == schedule))

    def submit_due(self, submit: Callable[[Submission, float], object], now: float) -> None:
        """Submit what is due, each once however many of its times were missed; not while its last run goes on.

        submit: takes what is to be queued, and the time. The schedule's `problem` says why a time made no run: the run
        before, a refusal, or a row that cannot be used, which is tried again in an hour and keeps no other schedule.
        """
        with self._database.read() as connection:
            found = connection.execute(select(SCHEDULES).where(SCHEDULES.c.next <= now)).mappings()
            due = [Schedule(**row) for row in found]
        for schedule in due:
            values: dict[str, object] = {"next": now + UNUSABLE_S}
            try:
                values["next"] = next_time(schedule.cron, schedule.time_zone, now)
                missed = datetime.fromtimestamp(schedule.next, UTC)
                if run := self._open_run(schedule):
                    values["problem"] = f"run {run} of this schedule was not over at {missed:%Y-%m-%d %H:%M} UTC."
                else:
                    submit(_submission(schedule), now)
                    values |= {"last": schedule.next, "problem": None}
            except UnavailableError:
                raise
            except Exception as error:
                values["problem"] = str(error) if isinstance(error, TuningError) else one_line(error)
            with self._database.write() as connection:
                connection.execute(update(SCHEDULES).where(SCHEDULES.c.id == schedule.id).values(values))

    def _open_run(self, schedule: Schedule) -> str | None:
        """The run of an earlier time that still waits or works."""
        earlier = (RUNS.c.schedule == schedule.id, RUNS.c.state.in_(OPEN), RUNS.c.submitted < schedule.next)
        with self._database.read() as connection:
            return connection.execute(select(RUNS.c.id).where(*earlier).limit(1)).scalar()


def _submission(schedule: Schedule) -> Submission:
    """What is submitted at a time: again the same run when the server was killed before it had noted that."""
    slots = schedule.definition.get("slots")
    return Submission(
        schedule.team,
        schedule.name,
        schedule.definition,
        schedule.priority,
        slots if isinstance(slots, int) else None,
        schedule.id,
        key=f"schedule {schedule.id} {schedule.next:.0f}",
    )


def _one(connection: Connection, schedule: object, team: str) -> Schedule:
    wanted = select(SCHEDULES).where(SCHEDULES.c.id == schedule, SCHEDULES.c.team == team)
    found = connection.execute(wanted).mappings().first()
    if found is None:
        raise MissingError(f"there is no schedule {schedule!r} in your team.")
    return Schedule(**found)
