"""The service's database on a real PostgreSQL: claims, schemas, one server, and a restart in the middle."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos import wait_for
from full_database import check_that_a_step_keeps_all, rows_of
from postgres_server import PostgresServer
from service_app import bearer
from sqlalchemy import text
from starlette.testclient import TestClient
from supervised import Supervised

from tuning.errors import RunError, UnavailableError
from tuning.service.database import schema
from tuning.service.database.connection import Database
from tuning.service.queue.claim import claim
from tuning.service.service import Service
from tuning.service.single_server import SingleServer
from tuning.service.states import WORKING, RunState
from tuning.service.web.app import create_app


@pytest.fixture
def empty(postgres: PostgresServer) -> Iterator[Database]:
    made = Database(postgres.uri("psycopg"))
    with made.write() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    yield made
    made.close()


@pytest.fixture
def database(empty: Database) -> Database:
    schema.upgrade(empty)
    return empty


def test_ten_threads_that_claim_at_once_never_exceed_the_slots(database: Database, tmp_path: Path) -> None:
    server = Supervised(database, tmp_path)
    for _ in range(30):
        server.submit()
    barrier = threading.Barrier(10)

    def claim_all() -> None:
        barrier.wait()
        while claim(database, server.settings, 4, server.now):
            pass

    threads = [threading.Thread(target=claim_all) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(run.slots for run in server.runs.in_states(WORKING)) == 4


def test_a_database_that_is_restarted_is_told_and_nothing_is_lost(
    database: Database, postgres: PostgresServer, tmp_path: Path
) -> None:
    server = Supervised(database, tmp_path, "touch begun; while [ ! -e go ]; do sleep 0.05; done")
    run = server.begun()
    folder = server.work_of(run)
    service = Service(server.settings, database)
    web = TestClient(create_app(service), headers=bearer(service))
    postgres.stop()
    try:
        with pytest.raises(UnavailableError, match="cannot be used"):
            server.supervisor.look()
        refused = web.get(f"/api/v1/runs/{run}")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10")
        assert "Nothing was changed. Try again" in refused.json()["detail"]
        (folder / "go").touch()
        wait_for((folder / "exit.json").exists)
    finally:
        postgres.start()
    server.supervisor.look()
    assert server.get(run).state is RunState.FINISHED
    assert server.starts() == 1
    assert web.get(f"/api/v1/runs/{run}").json()["state"] == "finished"


def test_a_second_server_is_refused(database: Database) -> None:
    first = SingleServer(database, lambda: None)
    first.take()
    with pytest.raises(UnavailableError, match="another server works on") as refused:
        SingleServer(Database(database.url.render_as_string(hide_password=False)), lambda: None).take()
    assert "process " in str(refused.value)
    first.release()


def test_a_step_of_the_schema_keeps_all_rows(empty: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_a_step_keeps_all(empty, tmp_path, monkeypatch)


def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is(database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    before = rows_of(database)
    with pytest.raises(RunError, match="the schema '9999' of another version of this program") as refused:
        schema.upgrade(database)
    assert "Install that version, or give another --database" in str(refused.value)
    assert rows_of(database) == before
