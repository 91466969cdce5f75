"""Tables around dead letters: redrives of many at once, and the alarm when too many come."""

from __future__ import annotations

import sqlalchemy as sa

from jobs.storage.metadata import Document, Instant, metadata

_IS_DUE = sa.text("next_at IS NOT NULL")
_HAS_KEY = sa.text("idempotency_key IS NOT NULL")

#: A redrive of many letters: a place in their list, moved on one letter at a time.
redrives = sa.Table(
    "redrives",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("with_fleet", sa.Boolean, nullable=False),  # also letters that belong to no tenant
    sa.Column("asked_by", sa.Text, nullable=False),
    sa.Column("idempotency_key", sa.Text),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("filters", Document, nullable=False),
    sa.Column("rate_per_s", sa.Float, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("error", sa.Text),
    # How far it has come
    sa.Column("last_letter", sa.Text),  # the newest letter it may touch; what comes later is not its business
    sa.Column("after_letter", sa.Text),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("redriven", sa.Integer, nullable=False),
    sa.Column("noop", sa.Integer, nullable=False),
    sa.Column("failed", sa.Integer, nullable=False),
    sa.Column("reasons", Document, nullable=False),  # why nothing was done, and how often
    # The work
    sa.Column("next_at", Instant),  # when its rate allows the next letter; NULL once it has ended
    sa.Column("starts", sa.Integer, nullable=False),  # that never came to their end, in a row
    sa.Column("lease_token", sa.Text),
    sa.Column("lease_until", Instant),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("finished_at", Instant),
    sa.CheckConstraint("state IN ('running', 'done', 'canceled', 'failed')", name="state"),
    # What has ended is not due, and nothing that runs is forgotten.
    sa.CheckConstraint("(state = 'running') = (next_at IS NOT NULL)", name="due_while_running"),
    sa.CheckConstraint("(state = 'running') = (finished_at IS NULL)", name="finished"),
    sa.CheckConstraint("rate_per_s > 0", name="rate"),
    sa.Index("ix_redrives_next_at", "next_at", sqlite_where=_IS_DUE, postgresql_where=_IS_DUE),
    sa.Index("ix_redrives_tenant_id", "tenant", "id"),
    # A key makes one redrive, however often its request is sent; an admin's, which reaches further, is another request.
    sa.Index(
        "uq_redrives_key",
        "tenant",
        "with_fleet",
        "idempotency_key",
        unique=True,
        sqlite_where=_HAS_KEY,
        postgresql_where=_HAS_KEY,
    ),
)

#: An alarm of the fleet as a whole: raised once, ended once.
alarms = sa.Table(
    "alarms",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("raised_at", Instant),  # NULL while it is quiet
    sa.Column("changed_at", Instant, nullable=False),
)
