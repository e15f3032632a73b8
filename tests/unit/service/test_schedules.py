"""Cron expressions in time zones, and when a definition is submitted again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update
from supervised import Supervised

from tuning.errors import DefinitionError, MissingError
from tuning.service.admission import admit
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs, Submission, SubmittedRun
from tuning.service.database.tables import SCHEDULES
from tuning.service.requests import Requests
from tuning.service.schedules import Schedules, next_time
from tuning.service.settings import Quotas, ServiceSettings, Team
from tuning.service.states import RunState


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="minutes")


@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        ("0 3 * * 1", "UTC", "2026-06-03T10:00+00:00", "2026-06-08T03:00+00:00"),
        ("0 3 * * 1", "Europe/Berlin", "2026-06-03T10:00+00:00", "2026-06-08T01:00+00:00"),
        ("0 3 * * 1", "Europe/Berlin", "2026-12-03T10:00+00:00", "2026-12-07T02:00+00:00"),
        # on 29 March 2026 there is no half past two: it runs as soon as the clocks have changed
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00+00:00", "2026-03-29T01:00+00:00"),
        # on 25 October 2026 there are two of them: it runs at the first
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00+00:00", "2026-10-25T00:30+00:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30+00:00", "2026-10-26T01:30+00:00"),
        ("0 0 * * *", "Asia/Kolkata", "2026-06-03T10:00+00:00", "2026-06-03T18:30+00:00"),
    ],
)
def test_times_are_those_of_the_zone(cron: str, zone: str, after: str, expected: str) -> None:
    assert utc(next_time(cron, zone, at(after))) == expected


@pytest.mark.parametrize(
    ("cron", "zone", "says"),
    [
        ("every monday", "UTC", "not a cron expression"),
        ("0 3 * *", "UTC", "not a cron expression"),
        ("61 3 * * 1", "UTC", "not a cron expression"),
        ("0 3 30 2 *", "UTC", "schedule: '0 3 30 2"),
        ("0 3 * * 1 *", "UTC", "it has 6 fields"),
        ("*/5 0 3 * * 1", "UTC", "it has 6 fields"),
        ("0 3 * * 1 2026 2027", "UTC", "it has 7 fields"),
        ("@daily", "UTC", "it has 1 field,"),
        ("", "UTC", "it has 0 fields"),
        ("0 3 * * 1", "Mars/Base", "not a time zone"),
        ("0 3 * * 1", "posix/Europe/Berlin", "not a time zone"),
        ("0 3 * * 1", "right/Europe/Berlin", "not a time zone"),
        ("0 3 * * 1", "posixrules", "not a time zone"),
        ("0 3 * * 1", "localtime", "not a time zone"),
        ("0 3 * * 1", "Factory", "not a time zone"),
        ("0 3 * * 1", "europe/berlin", "not a time zone"),
        ("0 3 * * 1", "Europe", "not a time zone"),
        ("0 3 * * 1", "zone.tab", "not a time zone"),
        ("0 3 * * 1", "/etc/localtime", "not a time zone"),
        ("0 3 * * 1", "../../etc/passwd", "not a time zone"),
        ("0 3 * * 1", "", "not a time zone"),
    ],
)
def test_what_is_no_schedule_is_refused(cron: str, zone: str, says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        next_time(cron, zone, 0.0)


WEEKLY = Submission("churn", "week", {"target": "y", "slots": 3}, priority=2)
MONDAY = at("2026-06-08T03:00+00:00")
WEEK = timedelta(days=7).total_seconds()
BAD_ROWS: list[dict[str, object]] = [
    {"time_zone": "posix/Europe/Berlin"},
    {"time_zone": "Mars/Base"},
    {"time_zone": "\x00"},
    {"cron": "every monday"},
    {"cron": "0 0 3 * * 1"},
    {"cron": "0 3 30 2 *"},
    {"definition": ["no", "mapping"]},
    {"definition": None},
]


@pytest.mark.parametrize("bad", BAD_ROWS, ids=str)
def test_a_row_that_cannot_be_used_has_a_problem_and_holds_nobody_up(
    database: Database, tmp_path: Path, bad: dict[str, object]
) -> None:
    server = Supervised(database, tmp_path)
    schedules, name = Schedules(database), next(iter(bad))
    made = schedules.add(Submission("churn", "bad", {"target": "y"}), "0 3 * * 1", "UTC", 0.0)
    other = schedules.add(Submission("credit", "good", {"target": "y"}), "0 3 * * 1", "UTC", 0.0)
    with database.write() as connection:  # as another machine, an older version or a hand has left it
        row = {name: bad[name], "next": 1.0}
        connection.execute(update(SCHEDULES).where(SCHEDULES.c.id == made.id).values(row))
    server.now = MONDAY
    queued = server.submit("sales")
    server.supervisor.look()
    server.look_until(queued, RunState.FINISHED)
    assert schedules.get(other.id, "credit").last is not None
    assert server.runs.page("churn") == []
    after = schedules.get(made.id, "churn")
    assert after.problem
    assert MONDAY < after.next <= MONDAY + WEEK
    asked = list[object]()
    schedules.submit_due(lambda *submission: asked.append(submission), MONDAY + 60)
    assert asked == []  # not at every look


class Server:
    def __init__(self, database: Database, **quotas: int) -> None:
        settings = ServiceSettings(
            database="sqlite://", storage="runs", work=Path("work"), teams={"churn": Team(quotas=Quotas(**quotas))}
        )
        self.runs, self.schedules = Runs(database), Schedules(database)
        self.requests = Requests(database, settings, lambda: 4)

    def look(self, now: float) -> list[SubmittedRun]:
        self.schedules.submit_due(self.requests.submit, now)
        return self.runs.page("churn")


def test_a_time_that_was_missed_is_made_up_once(database: Database) -> None:
    server = Server(database)
    made = server.schedules.add(WEEKLY, "0 3 * * 1", "UTC", MONDAY - 3600)
    assert server.look(MONDAY - 1) == []
    (run,) = server.look(MONDAY + 5 * WEEK + 60)  # the server was down for weeks
    assert (run.schedule, run.priority, run.slots_asked, run.definition) == (made.id, 2, 3, WEEKLY.definition)
    assert len(server.look(MONDAY + 5 * WEEK + 120)) == 1
    after = server.schedules.get(made.id, "churn")
    assert (after.last, after.next, after.problem) == (MONDAY, MONDAY + 6 * WEEK, None)


def test_a_run_that_still_goes_on_is_not_joined(database: Database) -> None:
    server = Server(database)
    made = server.schedules.add(WEEKLY, "0 3 * * 1", "UTC", MONDAY - 3600)
    (run,) = server.look(MONDAY)
    server.runs.change(run.id, RunState.RUNNING, MONDAY, slots=1)
    assert len(server.look(MONDAY + WEEK)) == 1
    skipped = server.schedules.get(made.id, "churn")
    assert skipped.problem == f"run {run.id} of this schedule was not over at 2026-06-15 03:00 UTC."
    assert skipped.last == MONDAY
    server.runs.change(run.id, RunState.FINISHED, MONDAY + WEEK + 60)
    assert len(server.look(MONDAY + WEEK + 120)) == 1  # that time is over
    assert len(server.look(MONDAY + 2 * WEEK)) == 2
    after = server.schedules.get(made.id, "churn")
    assert (after.last, after.problem) == (MONDAY + 2 * WEEK, None)


@pytest.mark.parametrize("waits", [False, True])
def test_a_server_killed_between_the_run_and_its_note_submits_it_once(database: Database, waits: bool) -> None:
    server = Server(database)
    made = server.schedules.add(WEEKLY, "0 3 * * 1", "UTC", MONDAY - 3600)

    def killed(submission: Submission, now: float) -> tuple[SubmittedRun, bool]:
        run = server.requests.submit(submission, now)
        if not waits:
            server.runs.change(run.id, RunState.CANCELLED, now)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        server.schedules.submit_due(killed, MONDAY)
    assert len(server.look(MONDAY + 1)) == 1
    after = server.schedules.get(made.id, "churn")
    assert (after.last, after.problem) == (MONDAY, None)


def test_what_a_quota_refuses_is_the_schedules_problem(database: Database) -> None:
    server = Server(database, queued_runs=0)
    made = server.schedules.add(WEEKLY, "0 3 * * 1", "UTC", MONDAY - 3600)
    assert server.look(MONDAY) == []
    after = server.schedules.get(made.id, "churn")
    assert after.problem is not None
    assert "0 are allowed" in after.problem
    assert after.next == MONDAY + WEEK


@pytest.mark.parametrize(
    ("taken", "reason"),
    [
        ({"code": ()}, "metric: 'ours.metrics:profit' is code that this server's configuration does not list"),
        ({"data": ("/elsewhere",)}, "data: "),
    ],
)
def test_what_a_team_may_not_use_any_more_is_refused_at_the_time(
    database: Database, tmp_path: Path, taken: dict[str, object], reason: str
) -> None:
    server = Supervised(database, tmp_path)
    team = Team(data=(str(tmp_path / "data"),), code=("ours.metrics:profit",))
    server.settings = server.settings.model_copy(update={"teams": {"churn": team}})
    definition = {"data": "a.csv", "target": "y", "metric": "ours.metrics:profit", "name": "week"}
    admitted = admit(definition, "churn", server.settings)
    schedules = Schedules(database)
    made = schedules.add(admitted.submission, "0 3 * * 1", "UTC", MONDAY - 3600)
    allowed = server.settings
    server.settings = allowed.model_copy(update={"teams": {"churn": team.model_copy(update=taken)}})
    server.now = MONDAY
    server.again().look()
    after = schedules.get(made.id, "churn")
    assert server.runs.page("churn") == []
    assert after.problem is not None
    assert after.problem.startswith(reason)
    server.settings, server.now = allowed, MONDAY + WEEK
    server.again().look()
    (run,) = server.runs.page("churn")
    assert (run.schedule, schedules.get(made.id, "churn").problem) == (made.id, None)


def test_another_teams_schedule_is_like_one_that_is_not_there(database: Database) -> None:
    server = Server(database)
    made = server.schedules.add(WEEKLY, "0 3 * * 1", "UTC", MONDAY)
    with pytest.raises(MissingError):
        server.schedules.get(made.id, "credit")
    with pytest.raises(MissingError):
        server.schedules.delete(made.id, "credit")
    assert server.schedules.all("credit") == []
    server.schedules.delete(made.id, "churn")
    assert server.schedules.all("churn") == []
