"""A PostgreSQL server of one file's tests."""

from __future__ import annotations

from collections.abc import Iterator

import postgres_server
import pytest
from postgres_server import PostgresServer


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    if reason := postgres_server.missing():
        pytest.skip(reason)
    server = PostgresServer()
    yield server
    server.remove()
