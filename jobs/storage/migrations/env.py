"""Alembic's entry: runs on the connection that ``upgrade`` hands over."""

from __future__ import annotations

from alembic import context

from jobs.storage.metadata import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
    transaction_per_migration=False,
)
context.run_migrations()
