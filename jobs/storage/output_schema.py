"""The tables of streamed output: what a run said while it worked, and the work of listening to it.

A job has one stream, of its newest attempt. Whenever its text begins anew (another attempt, or a provider that cannot
go on where a reader died), its generation grows, and the text of the old one is gone.
"""

from __future__ import annotations

import sqlalchemy as sa

from jobs.storage.metadata import Instant, metadata

output_streams = sa.Table(
    "output_streams",
    metadata,
    sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id"), primary_key=True),
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),  # whose run it is
    sa.Column("generation", sa.Integer, nullable=False),  # from 1
    sa.Column("length", sa.BigInteger, nullable=False),  # in characters (Unicode code points)
    sa.Column("place", sa.Text),  # the provider's own mark after the last piece; NULL = it gave none
    # The reading
    sa.Column("next_read_at", Instant),  # NULL while the attempt has no run, and once the stream has ended
    sa.Column("starts", sa.Integer, nullable=False),  # of readings that never came to their end, in a row
    sa.Column("tries", sa.Integer, nullable=False),  # of readings that brought nothing, in a row
    sa.Column("rings", sa.Integer, nullable=False),  # how often a reader was called since one came
    sa.Column("lease_token", sa.Text),
    sa.Column("lease_until", Instant),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("ended_at", Instant),
    sa.Column("reason", sa.Text),  # why it ended; "complete" where the provider said that this is all
    sa.CheckConstraint("attempt > 0 AND generation > 0 AND length >= 0", name="counters"),
    # An end has its reason, and what has ended is not read.
    sa.CheckConstraint("(ended_at IS NULL) = (reason IS NULL)", name="reason"),
    sa.CheckConstraint("ended_at IS NULL OR next_read_at IS NULL", name="no_work_after_end"),
    sa.Index(
        "ix_output_streams_next_read_at",
        "next_read_at",
        sqlite_where=sa.text("next_read_at IS NOT NULL"),
        postgresql_where=sa.text("next_read_at IS NOT NULL"),
    ),
)

job_output = sa.Table(
    "job_output",
    metadata,
    # One row for each batch of pieces. The key is the guard of last resort: no offset is written twice.
    sa.Column("job_id", sa.Text, sa.ForeignKey("output_streams.job_id"), primary_key=True),
    sa.Column("generation", sa.Integer, primary_key=True),
    sa.Column("offset", sa.BigInteger, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
)
