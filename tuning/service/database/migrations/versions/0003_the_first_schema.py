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
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("team", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("typed", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_plans")),
    )
    with op.batch_alter_table("plans", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_plans_state"), ["state"], unique=False)
        batch_op.create_index(batch_op.f("ix_plans_team_at"), ["team", "at"], unique=False)

    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("team", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("run_directory", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("slots_asked", sa.Integer(), nullable=True),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("submitted", sa.Float(), nullable=False),
        sa.Column("queued", sa.Float(), nullable=False),
        sa.Column("started", sa.Float(), nullable=True),
        sa.Column("ended", sa.Float(), nullable=True),
        sa.Column("not_before", sa.Float(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("stop_asked", sa.Float(), nullable=True),
        sa.Column("ending", sa.String(length=16), nullable=True),
        sa.Column("outcome", sa.JSON(), nullable=True),
        sa.Column("schedule", sa.String(length=32), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("submitted_by", sa.String(length=255), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_runs_state_team"), ["state", "team"], unique=False)
        batch_op.create_index(batch_op.f("ix_runs_team_submitted_id"), ["team", "submitted", "id"], unique=False)

    op.create_table(
        "schedules",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("team", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("cron", sa.String(length=255), nullable=False),
        sa.Column("time_zone", sa.String(length=64), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("next", sa.Float(), nullable=False),
        sa.Column("last", sa.Float(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
    )
    with op.batch_alter_table("schedules", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_schedules_next"), ["next"], unique=False)

    op.create_table(
        "servers",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.JSON(), nullable=False),
        sa.Column("beat", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_servers")),
    )
    op.create_table(
        "slot_uses",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("team", sa.String(length=64), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("since", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_slot_uses")),
    )
    with op.batch_alter_table("slot_uses", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_slot_uses_run"), ["run"], unique=False)
        batch_op.create_index(batch_op.f("ix_slot_uses_until_team"), ["until", "team"], unique=False)

    op.create_table(
        "submissions",
        sa.Column("team", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("made", sa.String(length=32), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("team", "key", name=op.f("pk_submissions")),
    )
    op.create_table(
        "tokens",
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("team", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=True),
        sa.Column("revoked", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_tokens")),
        sa.UniqueConstraint("team", "name", name=op.f("uq_tokens_team_name")),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("token", sa.LargeBinary(length=32), nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["token"], ["tokens.digest"], name=op.f("fk_sessions_token"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_sessions")),
    )
    with op.batch_alter_table("sessions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_sessions_expires"), ["expires"], unique=False)

    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_events_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_events_run_id"), ["run", "id"], unique=False)
