"""A database of the service with its newest schema, made once and copied for each test; and an application on it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos import wait_for
from service_app import ORIGIN
from starlette.testclient import TestClient
from supervised import launchers_in

from tuning.service.database import schema
from tuning.service.database.connection import Database
from tuning.service.database.tokens import Role
from tuning.service.service import Service
from tuning.service.settings import ServiceSettings
from tuning.service.web.app import create_app


@pytest.fixture(scope="session")
def _empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("service") / "service.db"
    database = Database(f"sqlite:///{file}")
    schema.upgrade(database)
    database.close()
    return file


@pytest.fixture
def database(tmp_path: Path, _empty_database: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{shutil.copy(_empty_database, tmp_path)}")
    yield made
    made.close()
    if (tmp_path / "work").exists():
        wait_for(lambda: not launchers_in(tmp_path), what="the end of the drivers: a test leaves no process behind")


@pytest.fixture
def service(database: Database, tmp_path: Path) -> Service:
    """A server's parts, without a supervisor; teams may read below `tmp_path/data`."""
    (tmp_path / "data").mkdir()
    settings = ServiceSettings(
        database=str(database.url),
        storage=str(tmp_path / "runs"),
        work=tmp_path / "work",
        data=(str(tmp_path / "data"),),
    )
    return Service(settings, database, slots=lambda: 4, stream_s=0.0)  # a stream ends after what is there


@pytest.fixture
def page(web: TestClient, service: Service) -> TestClient:
    """A browser in which a member of `churn` has logged in."""
    token = service.tokens.create("churn", Role.SUBMIT, "person", 1.0)
    assert web.post("/login", data={"token": token}, headers=ORIGIN).status_code == 303
    return web


@pytest.fixture
def web(service: Service) -> TestClient:
    """A client without a token; errors that nobody foresaw are answered, as a server does."""
    return TestClient(create_app(service), raise_server_exceptions=False, follow_redirects=False)
