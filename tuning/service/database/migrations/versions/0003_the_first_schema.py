"""The first schema: the tables as they are in the code.

A step that follows changes these; whoever writes it writes this one out first, table by table, as it is then.
"""

from __future__ import annotations

from alembic import op

from tuning.service.database.tables import METADATA

revision = "0003"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    METADATA.create_all(op.get_bind())
