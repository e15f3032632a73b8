"""Which schema a database has, and how it gets the newest: by alembic's migrations."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from tuning.errors import RunError
from tuning.service.database.connection import Database

MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(database: Database) -> None:
    """Bring a database to the newest schema, in one transaction; rows are kept.

    Raises `RunError` for a database of another version of this program.
    """
    config = _config()
    with database.write(references=False) as connection:
        at = MigrationContext.configure(connection).get_current_revision()
        if at is not None and at not in revisions():
            raise RunError(
                f"the database {database.shown} has the schema {at!r} of another version of this program; this one "
                f"knows {revisions()[0]!r} as the newest. Install that version, or give another --database."
            )
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def revisions() -> list[str]:
    """The known schemas, the newest first."""
    return [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()]


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config
