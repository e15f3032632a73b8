"""Steps of the schema to come lose no row of a SQLite file."""

from __future__ import annotations

from pathlib import Path

import pytest
from full_database import check_that_a_step_keeps_all

from tuning.service.database.connection import Database


def test_a_step_that_makes_a_table_anew_takes_no_row_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(f"sqlite:///{tmp_path / 'service.db'}")
    check_that_a_step_keeps_all(database, tmp_path, monkeypatch)
    database.close()
