"""What is learned of the accounts at providers: how long their jobs take, how they come home, what they cost.

All of it is derived from jobs and could be lost without losing one; none of it grows with their number.
"""

from __future__ import annotations

import sqlalchemy as sa

from jobs.storage.metadata import Document, Instant, metadata

durations = sa.Table(
    "durations",
    metadata,
    sa.Column("provider", sa.Text, primary_key=True),
    sa.Column("model", sa.Text, primary_key=True),  # empty where the provider's jobs are all of one kind
    sa.Column("samples_s", Document, nullable=False),  # of the newest ends, oldest first
    sa.Column("updated_at", Instant, nullable=False),
)

provider_standings = sa.Table(
    "provider_standings",
    metadata,
    sa.Column("provider", sa.Text, primary_key=True),
    sa.Column("recent", Document, nullable=False),  # the newest ends, oldest first: [source, state, unnoticed for]
    sa.Column("degraded_at", Instant),  # since when too many jobs come home without their webhook
)

spend = sa.Table(
    "spend",
    metadata,
    sa.Column("provider", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("currency", sa.Text, primary_key=True),
    sa.Column("day", sa.Text, primary_key=True),  # UTC, 2026-01-31
    sa.Column("amount", sa.Float, nullable=False),
)
