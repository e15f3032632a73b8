"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "plans",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("team", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON()),
        sa.Column("problem", sa.Text()),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("typed", sa.Text()),
        sa.Index(None, "state"),
        sa.Index(None, "team", "at"),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("team", sa.String(64), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("run_directory", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("slots_asked", sa.Integer()),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("submitted", sa.Float(), nullable=False),
        sa.Column("queued", sa.Float(), nullable=False),
        sa.Column("started", sa.Float()),
        sa.Column("ended", sa.Float()),
        sa.Column("not_before", sa.Float(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("stop_asked", sa.Float()),
        sa.Column("ending", sa.String(16)),
        sa.Column("outcome", sa.JSON()),
        sa.Column("schedule", sa.String(32)),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("submitted_by", sa.String(255)),
        sa.Index(None, "state", "team"),
        sa.Index(None, "team", "submitted", "id"),
    )
    op.create_table(
        "schedules",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("team", sa.String(64), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("cron", sa.String(255), nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("next", sa.Float(), nullable=False),
        sa.Column("last", sa.Float()),
        sa.Column("problem", sa.Text()),
        sa.Index(None, "next"),
    )
    op.create_table(
        "servers",
        sa.Column("id", sa.Integer(), autoincrement=False, primary_key=True),
        sa.Column("owner", sa.JSON(), nullable=False),
        sa.Column("beat", sa.Integer(), nullable=False),
    )
    op.create_table(
        "slot_uses",
        sa.Column("id", sa.Integer(), autoincrement=True, primary_key=True),
        sa.Column("run", sa.String(32), nullable=False),
        sa.Column("team", sa.String(64), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("since", sa.Float(), nullable=False),
        sa.Column("until", sa.Float()),
        sa.Index(None, "run"),
        sa.Index(None, "until", "team"),
    )
    op.create_table(
        "submissions",
        sa.Column("team", sa.String(64), primary_key=True),
        sa.Column("key", sa.String(255), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("made", sa.String(32), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("digest", sa.LargeBinary(32), primary_key=True),
        sa.Column("team", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float()),
        sa.Column("revoked", sa.Float()),
        sa.UniqueConstraint("team", "name"),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), autoincrement=True, primary_key=True),
        sa.Column("run", sa.String(32), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="CASCADE"),
        sa.Index(None, "run", "id"),
        sqlite_autoincrement=True,
    )
