"""Bad luck of the server's own: each is a sentence in a state or an answer, and nothing is lost.

What happens to real drivers is in `tests/service/test_bad_luck.py`, silent ones in `test_progress_watchdog.py`, and a
database that is restarted in `tests/service/test_postgres.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from chaos import wait_for
from service_app import bearer, submitted
from sqlalchemy import Connection, event, insert
from starlette.testclient import TestClient
from supervised import Supervised, gone

from tuning.errors import UnavailableError
from tuning.service.database import connection
from tuning.service.database.connection import Database
from tuning.service.database.runs import SubmittedRun
from tuning.service.database.tables import EVENTS, RUNS
from tuning.service.queue import claim as queue
from tuning.service.queue.shares import Waiting
from tuning.service.service import Service
from tuning.service.states import RunState
from tuning.service.supervisor import launcher
from tuning.service.web.app import create_app

WORKS = "touch begun; while [ ! -e go ]; do sleep 0.05; done"
FAILS_ONCE = "if [ ! -e ../../../failed ]; then touch ../../../failed; exit 1; fi"


@contextmanager
def full_disk(database: Database) -> Iterator[None]:
    """The database's file may not grow, and has no room left within."""

    def no_page_more(connection: Connection) -> None:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    event.listen(database.engine, "begin", no_page_more)
    with database.read() as reading:
        run = reading.execute(RUNS.select()).first()
    assert run is not None
    for size in (3000, 300, 30, 1):
        with pytest.raises(UnavailableError, match="full"):
            fill(database, run.id, "x" * size)
    yield
    event.remove(database.engine, "begin", no_page_more)
    database.close()
    with database.write() as writing:
        writing.execute(EVENTS.delete().where(EVENTS.c.at == 0.0))


def fill(database: Database, run: str, reason: str) -> None:
    """Write events until there is no room for another one."""
    while True:
        with database.write() as writing:
            writing.execute(insert(EVENTS).values(run=run, at=0.0, state="queued", reason=reason))


def test_a_full_disk_of_the_database_is_an_answer_and_takes_no_run_with_it(
    database: Database, service: Service, web: TestClient, tmp_path: Path
) -> None:
    headers = {**bearer(service), "Idempotency-Key": "once"}
    server = Supervised(database, tmp_path, WORKS)
    (tmp_path / "data" / "rows.csv").write_text("a,y\n1,2\n")
    run = server.begun()
    driver = server.process(run, "driver")
    definition = {"data": str(tmp_path / "data" / "rows.csv"), "target": "y"}
    with full_disk(database):
        refused = web.post("/api/v1/runs", json=definition, headers=headers)
        assert refused.status_code == 503
        assert "Nothing was changed. Try again" in refused.json()["detail"]
        assert web.get(f"/api/v1/runs/{run}", headers=headers).json()["state"] == "running"
        (server.work_of(run) / "go").touch()
        wait_for(lambda: gone(driver) and (server.work_of(run) / launcher.EXIT).exists())
        with pytest.raises(UnavailableError, match="full"):
            server.supervisor.look()
    assert server.look(run).state is RunState.FINISHED
    assert web.post("/api/v1/runs", json=definition, headers=headers).status_code == 202
    assert sum(server.runs.counts().values()) == 2
    assert [told.state for told in server.runs.events(run)] == ["queued", "running", "finished"]


def test_a_database_that_is_locked_is_an_answer_to_a_writer_and_none_to_readers(
    service: Service, web: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connection.BUSY_S > 30  # a lock of half a minute is waited for
    run, headers = submitted(service), bearer(service)
    monkeypatch.setattr(connection, "BUSY_S", 0.1)
    other = Database(service.settings.database)
    service.database.close()
    monkeypatch.setattr(service.database, "engine", other.engine)
    with Database(service.settings.database).write():
        refused = web.post(f"/api/v1/runs/{run}/cancel", headers=headers)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10")
        assert "Nothing was changed. Try again" in refused.json()["detail"]
        assert web.get(f"/api/v1/runs/{run}", headers=headers).json()["state"] == "queued"
    assert web.post(f"/api/v1/runs/{run}/cancel", headers=headers).json()["state"] == "cancelled"
    other.close()


def test_a_launcher_whose_folder_is_deleted_ends_with_its_driver(database: Database, tmp_path: Path) -> None:
    server = Supervised(database, tmp_path, f"touch begun; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done")
    server.begun()
    shutil.rmtree(server.settings.work)
    assert server.launchers() == 1
    (tmp_path / "go").touch()
    wait_for(lambda: server.launchers() == 0, what="the launcher's end")


def test_a_clock_that_is_set_back_an_hour_at_every_step_holds_nothing_up(database: Database, tmp_path: Path) -> None:
    server = Supervised(database, tmp_path, FAILS_ONCE)
    server.now = 100_000.0
    run = server.submit()
    server.now -= 3600
    assert server.look(run).state is RunState.RUNNING
    server.now -= 3600
    assert server.look_until(run, RunState.QUEUED).attempts == 1
    server.now -= 3600  # its pause of ten seconds would last an hour more
    assert server.look(run).state is RunState.RUNNING
    server.now -= 3600
    assert server.look_until(run, RunState.FINISHED)
    states = ["queued", "running", "queued", "running", "finished"]
    assert [told.state for told in server.runs.events(run)] == states
    assert all(use.seconds(server.now) == 0 for use in uses_of(database, server.now))


def uses_of(database: Database, now: float) -> list[queue.SlotUse]:
    with database.read() as reading:
        return queue.recent_uses(reading, now)


@contextmanager
def counted(database: Database) -> Iterator[list[str]]:
    """The statements that a database is asked."""
    found = list[str]()

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        found.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    yield found
    event.remove(database.engine, "before_cursor_execute", note)


def counting(monkeypatch: pytest.MonkeyPatch, place: str, made: Callable[..., object]) -> list[object]:
    """Everything that is made of rows at a place from now on."""
    found = list[object]()

    def make(*args: object, **values: object) -> object:
        found.append(made(*args, **values))
        return found[-1]

    monkeypatch.setattr(place, make)
    return found


def test_of_five_thousand_queued_runs_a_claim_and_a_list_read_a_few(
    database: Database, service: Service, web: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = bearer(service)
    like = {key: value for key, value in vars(service.runs.get(submitted(service))).items() if key != "id"}
    with counted(database) as of_one:
        web.get("/api/v1/runs", headers=headers)
    rows = [{**like, "id": f"{n:024d}", "team": ("churn", "credit")[n % 2], "submitted": float(n)} for n in range(5000)]
    with database.write() as writing:
        writing.execute(insert(RUNS), rows)
    waiting = counting(monkeypatch, "tuning.service.queue.claim.Waiting", Waiting)
    read = counting(monkeypatch, "tuning.service.database.runs.SubmittedRun", SubmittedRun)
    with counted(database) as of_many:
        page = web.get("/api/v1/runs", headers=headers).json()
    assert len(page["runs"]) == 50
    assert len(of_many) <= len(of_one)  # the places in the queue are known by then
    assert len(read) == 51  # and one that says whether there is another page
    claimed = queue.claim(database, service.settings, 4, 10_000.0)
    assert claimed is not None
    assert claimed.id == f"{0:024d}"
    assert len(waiting) == 4  # one of each team, before and within the transaction
    assert service.places()[f"{1:024d}"] == 1  # of the other team
    ahead = len(waiting)
    assert len(service.places()) == 5000  # all but the one that was claimed
    assert len(waiting) == ahead  # nothing has happened since


@pytest.mark.parametrize("why", ["The Ray cluster does not answer, so no run begins.", None])
def test_readyz_says_what_hinders_the_server(service: Service, why: str | None) -> None:
    unhealthy = replace(service, unhealthy_reason=lambda: why)
    answer = TestClient(create_app(unhealthy)).get("/readyz", headers=bearer(service))
    assert answer.status_code == (200 if why is None else 503)
    assert answer.json().get("detail") == why
