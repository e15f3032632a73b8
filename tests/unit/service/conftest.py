"""A database of the service with its newest schema, made once and copied for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tuning.service.database import schema
from tuning.service.database.connection import Database


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
