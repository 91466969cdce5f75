"""Endpoints, what is sent to them, and each attempt at it.

An endpoint's row is also its lane: ``next_send_at`` is when a claim is next worth while, NULL when nothing is due, so
that looking for work costs what is due and not what exists. ``deliveries.next_try_at`` is the one due time of a
delivery: of its first try, of a retry, and, while somebody sends it, the end of that lease.
"""

from __future__ import annotations

from enum import StrEnum

import sqlalchemy as sa

from jobs.storage.metadata import Document, Instant, RowId, metadata
from jobs.storage.schema import due_index, unique_where


class EndpointKind(StrEnum):
    """Where an endpoint comes from."""

    SUBSCRIBED = "subscribed"  # POST /v1/endpoints
    CALLBACK = "callback"  # the callback URLs of jobs at one origin: a lane, not a subscription


class EndpointState(StrEnum):
    """Whether an endpoint is sent to."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class DeliveryState(StrEnum):
    """What became of a delivery."""

    PENDING = "pending"  # will be tried, or is being tried
    SUCCEEDED = "succeeded"  # answered 2xx
    FAILED = "failed"  # exhausted its tries, or its endpoint refused it for good
    HELD = "held"  # its endpoint is disabled; kept to be recovered
    DROPPED = "dropped"  # its endpoint was deleted


def _one_of(column: str, values: type[StrEnum]) -> str:
    return f"{column} IN ({', '.join(repr(str(value)) for value in values)})"


endpoints = sa.Table(
    "endpoints",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("url", sa.Text, nullable=False),  # of a callback lane: the origin
    sa.Column("events", Document, nullable=False),
    sa.Column("description", sa.Text),
    sa.Column("sees_fleet", sa.Boolean, nullable=False),  # an admin made it: it may have events of no tenant
    sa.Column("rate_per_s", sa.Float, nullable=False),
    sa.Column("concurrency", sa.Integer, nullable=False),
    sa.Column("secrets", Document, nullable=False),  # sealed, newest first; of a callback lane: none of its own
    # Its health
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("disabled_at", Instant),
    sa.Column("disabled_reason", sa.Text),
    sa.Column("failing_since", Instant),  # the first failure since the last success
    sa.Column("last_failed_at", Instant),
    # Its lane
    sa.Column("next_send_at", Instant),
    sa.Column("not_before", Instant),  # its rate, or what its Retry-After asked for
    # A recovery under way, and how far it has come
    sa.Column("recover_next_at", Instant),
    sa.Column("recover_since", Instant),
    sa.Column("recover_until", Instant),
    sa.Column("recover_after", sa.Text),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("updated_at", Instant, nullable=False),
    sa.Column("deleted_at", Instant),
    sa.CheckConstraint(_one_of("kind", EndpointKind), name="kind"),
    sa.CheckConstraint(_one_of("state", EndpointState), name="state"),
    sa.CheckConstraint("(state = 'disabled') = (disabled_at IS NOT NULL)", name="disabled"),
    # Nobody is sent to who is disabled.
    sa.CheckConstraint("state = 'enabled' OR next_send_at IS NULL", name="no_lane_while_disabled"),
    sa.CheckConstraint("rate_per_s > 0 AND concurrency > 0", name="bounds"),
    due_index("endpoints", "next_send_at"),
    due_index("endpoints", "recover_next_at"),
    sa.Index("ix_endpoints_tenant_id", "tenant", "id"),
    unique_where("uq_endpoints_callback", ("tenant", "url"), "kind = 'callback'"),
)

#: The bytes of an event, the same for every endpoint and every try.
event_bodies = sa.Table(
    "event_bodies",
    metadata,
    sa.Column("event_id", sa.Text, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("endpoint_id", sa.Text, sa.ForeignKey("endpoints.id"), nullable=False),
    sa.Column("event_id", sa.Text, sa.ForeignKey("event_bodies.event_id"), nullable=False),
    sa.Column("event_type", sa.Text, nullable=False),
    sa.Column("job_id", sa.Text),
    sa.Column("url", sa.Text),  # of a callback; else the endpoint's own, as it is when it is sent
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),  # all there ever were, counted before each
    sa.Column("tries", sa.Integer, nullable=False),  # of those, since a person last asked for it
    sa.Column("starts", sa.Integer, nullable=False, server_default=sa.text("0")),  # that never ended, in a row
    sa.Column("next_try_at", Instant),
    sa.Column("lease_token", sa.Text),
    sa.Column("first_failed_at", Instant),
    sa.Column("occurred_at", Instant, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("finished_at", Instant),
    # An event reaches an endpoint's list once, however many relays there are.
    sa.UniqueConstraint("event_id", "endpoint_id"),
    sa.CheckConstraint(_one_of("state", DeliveryState), name="state"),
    # What is settled is not due, and nothing that waits is forgotten.
    sa.CheckConstraint("(state = 'pending') = (next_try_at IS NOT NULL)", name="due_while_pending"),
    sa.CheckConstraint("state = 'pending' OR lease_token IS NULL", name="no_lease_after_end"),
    sa.CheckConstraint("attempts >= tries AND tries >= 0", name="counters"),
    sa.Index(
        "ix_deliveries_lane",
        "endpoint_id",
        "next_try_at",
        sqlite_where=sa.text("next_try_at IS NOT NULL"),
        postgresql_where=sa.text("next_try_at IS NOT NULL"),
    ),
    sa.Index(
        "ix_deliveries_leased",
        "endpoint_id",
        sqlite_where=sa.text("lease_token IS NOT NULL"),
        postgresql_where=sa.text("lease_token IS NOT NULL"),
    ),
    sa.Index("ix_deliveries_tenant_id", "tenant", "id"),
    sa.Index("ix_deliveries_endpoint_id", "endpoint_id", "id"),
    sa.Index("ix_deliveries_job_id", "job_id"),
)

delivery_attempts = sa.Table(
    "delivery_attempts",
    metadata,
    sa.Column("id", RowId, primary_key=True, autoincrement=True),
    sa.Column("delivery_id", sa.Text, sa.ForeignKey("deliveries.id"), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("at", Instant, nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("ms", sa.Integer),  # NULL while it is under way, or where its worker was lost
    sa.Column("error", sa.Text),
    sa.Column("excerpt", sa.Text),
    sa.UniqueConstraint("delivery_id", "number"),
)

#: The secret a tenant's callbacks are signed with.
signing_secrets = sa.Table(
    "signing_secrets",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("secrets", Document, nullable=False),  # sealed, newest first
    sa.Column("created_at", Instant, nullable=False),
)
