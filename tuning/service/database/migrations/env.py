"""How alembic runs the steps: on the connection that `schema.upgrade` hands over."""

from __future__ import annotations

from alembic import context

from tuning.service.database.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,  # SQLite changes a column by making its table anew
)
with context.begin_transaction():
    context.run_migrations()
