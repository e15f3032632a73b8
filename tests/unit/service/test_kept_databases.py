"""SQLite files of released versions are brought to the newest schema, and steps to come lose no row either."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kept_databases import KEPT, rows_of, upgrade_keeps_all

from tuning.service.database import schema
from tuning.service.database.connection import Database

#: A step that changes a column, for which SQLite makes the table anew; `events` refers to it.
STEP = """
import sqlalchemy as sa
from alembic import op
revision, down_revision, branch_labels, depends_on = "9000", {newest!r}, None, None

def upgrade():
    with op.batch_alter_table("runs") as table:
        table.alter_column("name", type_=sa.String(300), existing_type=sa.String(255), existing_nullable=False)
"""


def kept(revision: str, folder: Path) -> Database:
    return Database(f"sqlite:///{shutil.copy(KEPT / f'{revision}.db', folder)}")


def test_every_schema_before_the_newest_is_kept() -> None:
    for revision in schema.revisions()[1:]:
        assert {file.name for file in KEPT.glob(f"{revision}.*")} == {f"{revision}.db", f"{revision}.sql"}


@pytest.mark.parametrize("revision", sorted(file.stem for file in KEPT.glob("*.db")))
def test_a_file_of_each_schema_is_brought_to_the_newest_with_its_rows(revision: str, tmp_path: Path) -> None:
    database = kept(revision, tmp_path)
    upgrade_keeps_all(database)
    database.close()


def test_a_step_that_makes_a_table_anew_takes_no_row_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = schema.revisions()[0]
    database = kept(newest, tmp_path)
    before = rows_of(database)
    migrations = shutil.copytree(schema.MIGRATIONS, tmp_path / "migrations")
    (migrations / "versions" / "9000_a_longer_name.py").write_text(STEP.format(newest=newest))
    monkeypatch.setattr(schema, "MIGRATIONS", migrations)
    schema.upgrade(database)
    assert rows_of(database) == before
    database.close()
