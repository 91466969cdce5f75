"""The inbox: every authentic event, byte for byte, and what became of it. Beside it, what was refused.

``next_try_at`` is the one due time of a row: of its first application, of a retry, of another look for a parked
one's job, and, while somebody works on it, the end of that lease. NULL means that nothing will happen by itself.
"""

from __future__ import annotations

from enum import StrEnum

import sqlalchemy as sa

from jobs.storage.metadata import Document, Instant, metadata
from jobs.storage.schema import due_index


class InboxStatus(StrEnum):
    """What became of an event."""

    ACCEPTED = "accepted"  # stored, not applied yet
    APPLIED = "applied"  # its job took it in
    IGNORED = "ignored"  # of no interest, or it told nothing that could matter
    PARKED = "parked"  # names a run nobody knows yet
    CONFLICT = "conflict"  # contradicts what came before it
    QUARANTINED = "quarantined"  # signed, but unusable
    DEAD = "dead"  # exhausted its tries


#: States in which a row waits for something to be done by itself.
_WAITING = "('accepted', 'parked')"

inbox_events = sa.Table(
    "inbox_events",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("tenant", sa.Text),  # the entry's, else that of the job, once it is found
    # Who sent it, and as what
    sa.Column("delivery_id", sa.Text),
    sa.Column("dedupe_key", sa.Text, nullable=False),
    sa.Column("token", sa.Text),  # of the callback URL, as called
    sa.Column("scheme", sa.Text, nullable=False),
    sa.Column("secret_index", sa.Integer, nullable=False),  # which of the provider's secrets matched, 0 = newest
    # What was sent: the bytes on the wire, still encoded as the headers say
    sa.Column("raw", sa.LargeBinary, nullable=False),
    sa.Column("headers", Document, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),  # SHA-256 of raw, hex
    sa.Column("fact", sa.Text),  # run and state it claims: tells a repeat from a contradiction
    sa.Column("provider_job_id", sa.Text),
    # What became of it
    sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id")),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("duplicates", sa.Integer, nullable=False),  # copies acknowledged after the first
    sa.Column("tries", sa.Integer, nullable=False),  # starts, counted before the work
    sa.Column("failures", sa.Integer, nullable=False),  # starts that ended in an error; the rest never ended
    sa.Column("lease_token", sa.Text),
    sa.Column("next_try_at", Instant),
    sa.Column("first_failed_at", Instant),
    sa.Column("parked_until", Instant),
    sa.Column("received_at", Instant, nullable=False),
    sa.Column("processed_at", Instant),
    # A delivery is stored once.
    sa.UniqueConstraint("provider", "dedupe_key"),
    sa.CheckConstraint(f"status IN ({', '.join(repr(str(status)) for status in InboxStatus)})", name="status"),
    # What is settled is not due again, and nothing that waits is forgotten.
    sa.CheckConstraint(f"(status IN {_WAITING}) = (next_try_at IS NOT NULL)", name="due_while_waiting"),
    sa.CheckConstraint("duplicates >= 0 AND failures >= 0 AND tries >= failures", name="counters"),
    due_index("inbox_events", "next_try_at"),
    # The submitter asks here for events that came before it knew its run.
    sa.Index(
        "ix_inbox_events_parked",
        "provider",
        "provider_job_id",
        sqlite_where=sa.text("status = 'parked'"),
        postgresql_where=sa.text("status = 'parked'"),
    ),
    sa.Index("ix_inbox_events_tenant_id", "tenant", "id"),
    sa.Index("ix_inbox_events_job_id", "job_id"),
)

#: Requests whose signature was refused: no events, and shown to nobody; kept so that a corrected secret can bring
#: them in. Bounded in number, size and age (``webhooks.incoming.receiving.quarantine_rows``).
quarantined_requests = sa.Table(
    "quarantined_requests",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("token", sa.Text),
    sa.Column("target", sa.Text, nullable=False),  # path and query, which some senders sign
    sa.Column("headers", Document, nullable=False),  # a shared secret as its digest only
    sa.Column("raw", sa.LargeBinary, nullable=False),
    sa.Column("size_bytes", sa.Integer, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("received_at", Instant, nullable=False),  # the receiver's clock: a recheck judges by this instant
    sa.Index("ix_quarantined_requests_provider_id", "provider", "id"),
    sa.Index("ix_quarantined_requests_received_at", "received_at"),
)
