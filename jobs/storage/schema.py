"""The tables of ``jobs``. Each CHECK and partial index states the rule it keeps.

Due times (``next_*_at``) are NULL when nothing is due, so that their partial indexes hold only open work and a sweep
costs what is due, not what exists. (Longer than other files, because the tables of one package are read together.)
"""

from __future__ import annotations

import sqlalchemy as sa

from jobs.core.observations import ReviewReason, Source
from jobs.core.states import TERMINAL, JobState
from jobs.storage import account_schema, letter_schema  # noqa: F401 - their tables belong to the same metadata
from jobs.storage import output_schema as _output_schema  # noqa: F401 - the same
from jobs.storage.metadata import Document, Instant, RowId, metadata


def _one_of(column: str, values: type[JobState] | type[Source] | type[ReviewReason] | tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(str(value)) for value in values)})"


def due_index(table: str, column: str) -> sa.Index:
    """An index over what is due only."""
    predicate = sa.text(f"{column} IS NOT NULL")
    return sa.Index(f"ix_{table}_{column}", column, sqlite_where=predicate, postgresql_where=predicate)


def turn_index(table: str, column: str) -> sa.Index:
    """An index over what is due, provider by provider and tenant by tenant: whose turn it is takes a few looks."""
    predicate = sa.text(f"{column} IS NOT NULL")
    columns = ("provider", "tenant", column)
    return sa.Index(f"ix_{table}_turns_{column}", *columns, sqlite_where=predicate, postgresql_where=predicate)


def unique_where(name: str, columns: tuple[str, ...], predicate: str) -> sa.Index:
    """A rule that holds among some rows of a table."""
    where = sa.text(predicate)
    return sa.Index(name, *columns, unique=True, sqlite_where=where, postgresql_where=where)


_TERMINAL_SQL = "({})".format(", ".join(repr(str(state)) for state in sorted(TERMINAL)))

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("provider_job_id", sa.Text),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),  # number of the current attempt, from 1
    sa.Column("event_count", sa.Integer, nullable=False),  # the last sequence given to an event of this job
    sa.Column("adopt", sa.Text),  # provider id of a run we took charge of instead of submitting
    sa.Column("model", sa.Text),  # the kind of work, as far as its duration goes
    # What was asked, and what came of it
    sa.Column("input", Document, nullable=False),
    sa.Column("output", Document),
    sa.Column("error", Document),
    sa.Column("links", Document),  # result files as the provider named them
    sa.Column("artifacts", Document),  # the same as the world sees them; written with the rows of ``artifacts``
    sa.Column("outcome", Document),  # a success that waits for its files: who said it, and its output
    sa.Column("metadata", Document, nullable=False),
    sa.Column("callback_url", sa.Text),  # told when it ends
    sa.Column("progress", Document),
    sa.Column("cost", sa.Float),
    sa.Column("ended_by", sa.Text),
    sa.Column("late_outcome", Document),
    # Waiting for a person
    sa.Column("review_reason", sa.Text),
    sa.Column("review_detail", sa.Text),
    sa.Column("review_since", Instant),
    # The clock
    sa.Column("expected_s", sa.Float),
    sa.Column("deadline_s", sa.Float, nullable=False),
    sa.Column("expected_at", Instant),
    sa.Column("review_at", Instant),
    sa.Column("deadline_at", Instant, nullable=False),
    sa.Column("overdue_at", Instant),
    sa.Column("cancel_requested_at", Instant),
    sa.Column("failing", sa.Boolean, nullable=False),  # the cancel under way was asked for by the deadline
    # Work that is due, each kind under the one lease
    sa.Column("next_submit_at", Instant),
    sa.Column("next_poll_at", Instant),
    sa.Column("next_cancel_at", Instant),
    sa.Column("next_alarm_at", Instant),  # the earliest of expected_at, review_at, deadline_at still ahead
    sa.Column("submit_tries", sa.Integer, nullable=False),
    sa.Column("poll_count", sa.Integer, nullable=False),
    sa.Column("polled_at", Instant),  # the last read that found it open: it ended after that
    sa.Column("poll_failures", sa.Integer, nullable=False),  # in a row
    sa.Column("missing_reads", sa.Integer, nullable=False),  # status reads answered "gone", in a row
    sa.Column("cancel_tries", sa.Integer, nullable=False),
    sa.Column("starts", sa.Integer, nullable=False),  # of work at the provider that never came to its end, in a row
    # The same of cancels alone: polls go on beside them, and each that ends well would wipe out the others' starts.
    sa.Column("cancel_starts", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("lease_token", sa.Text),
    sa.Column("lease_until", Instant),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("submitted_at", Instant),
    sa.Column("started_at", Instant),
    sa.Column("finished_at", Instant),
    sa.CheckConstraint(_one_of("state", JobState), name="state"),
    sa.CheckConstraint("version > 0 AND attempt > 0", name="counters"),
    sa.CheckConstraint(f"review_reason IS NULL OR {_one_of('review_reason', ReviewReason)}", name="review"),
    # An end has its instant, and only an end has.
    sa.CheckConstraint(f"(state IN {_TERMINAL_SQL}) = (finished_at IS NOT NULL)", name="finished"),
    # A job that has ended is never submitted again.
    sa.CheckConstraint("finished_at IS NULL OR next_submit_at IS NULL", name="no_submit_after_end"),
    due_index("jobs", "next_submit_at"),
    due_index("jobs", "next_poll_at"),
    due_index("jobs", "next_cancel_at"),
    turn_index("jobs", "next_submit_at"),
    turn_index("jobs", "next_poll_at"),
    turn_index("jobs", "next_cancel_at"),
    due_index("jobs", "next_alarm_at"),
    due_index("jobs", "lease_until"),
    sa.Index("ix_jobs_tenant_id", "tenant", "id"),
    sa.Index("ix_jobs_provider_state", "provider", "state"),
)

job_attempts = sa.Table(
    "job_attempts",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id"), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("idempotency_key", sa.Text, nullable=False),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("sending_at", Instant),  # committed just before the first request leaves; set = it may have arrived
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("asks", sa.Integer, nullable=False),  # empty answers to "do you know this submit?"
    sa.Column("outcome", sa.Text),
    sa.Column("provider_job_id", sa.Text),
    sa.Column("error", Document),
    sa.Column("cost", sa.Float),  # the most the provider has said it costs
    sa.Column("beyond_budget", sa.Boolean, nullable=False),  # a person wants it sent whatever the budget says
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("answered_at", Instant),
    sa.CheckConstraint("outcome IS NULL OR outcome IN ('accepted', 'refused', 'unknown')", name="outcome"),
    # I6: a key and a token belong to one attempt.
    sa.UniqueConstraint("job_id", "number"),
    sa.UniqueConstraint("idempotency_key"),
    sa.UniqueConstraint("provider", "token"),
    # A run belongs to one attempt.
    unique_where("uq_job_attempts_run", ("provider", "provider_job_id"), "provider_job_id IS NOT NULL"),
)

artifacts = sa.Table(
    "artifacts",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id"), nullable=False),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),  # among the files of the attempt, from 0
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("link", Document, nullable=False),  # as the provider named it last
    # What was stored
    sa.Column("content_type", sa.Text),
    sa.Column("size_bytes", sa.BigInteger),
    sa.Column("sha256", sa.Text),
    sa.Column("path", sa.Text),
    sa.Column("reason", sa.Text),
    # The fetch
    sa.Column("next_fetch_at", Instant),
    sa.Column("starts", sa.Integer, nullable=False),  # that never came to their end, in a row
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("refreshes", sa.Integer, nullable=False),  # how often the provider was asked for a fresh link
    sa.Column("lease_token", sa.Text),
    sa.Column("lease_until", Instant),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("settled_at", Instant),
    sa.CheckConstraint("state IN ('pending', 'stored', 'rejected', 'expired')", name="state"),
    sa.CheckConstraint("(state = 'stored') = (path IS NOT NULL)", name="stored"),
    sa.UniqueConstraint("job_id", "attempt", "position"),
    due_index("artifacts", "next_fetch_at"),
)

extra_runs = sa.Table(
    "extra_runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id"), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),  # whose submit it came of
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("provider_job_id", sa.Text, nullable=False),
    sa.Column("state", sa.Text),  # as the provider last said
    sa.Column("cost", sa.Float),
    sa.Column("tries", sa.Integer, nullable=False),  # counted before each, since the last time a person asked
    sa.Column("starts", sa.Integer, nullable=False, server_default=sa.text("0")),  # that never came to their end
    sa.Column("next_check_at", Instant),  # NULL once it is settled
    sa.Column("lease_token", sa.Text),
    sa.Column("lease_until", Instant),
    sa.Column("settled", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("found_at", Instant, nullable=False),
    sa.Column("settled_at", Instant),
    sa.CheckConstraint("settled IS NULL OR settled IN ('ended', 'not_ours', 'left')", name="settled"),
    # What is settled is not worked on.
    sa.CheckConstraint("settled IS NULL OR next_check_at IS NULL", name="no_work_after_end"),
    # A run is dealt with once, however often it is reported.
    sa.UniqueConstraint("provider", "provider_job_id"),
    due_index("extra_runs", "next_check_at"),
)

job_transitions = sa.Table(
    "job_transitions",
    metadata,
    sa.Column("id", RowId, primary_key=True, autoincrement=True),
    sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id"), nullable=False),
    sa.Column("from_state", sa.Text, nullable=False),
    sa.Column("to_state", sa.Text, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("at", Instant, nullable=False),
    sa.Column("attempt", sa.Integer),
    sa.Column("provider_job_id", sa.Text),
    sa.Column("event_id", sa.Text),
    sa.Column("digest", sa.Text),
    sa.Column("applied", sa.Boolean, nullable=False),
    sa.Column("reason", sa.Text),
    sa.CheckConstraint(_one_of("from_state", JobState) + " AND " + _one_of("to_state", JobState), name="states"),
    sa.CheckConstraint(_one_of("source", Source), name="source"),
    # I1: nothing applied leaves an end.
    sa.CheckConstraint(f"NOT applied OR from_state NOT IN {_TERMINAL_SQL}", name="terminal_absorbs"),
    sa.CheckConstraint("NOT applied OR to_state <> from_state AND to_state <> 'pending'", name="steps_up"),
    # I1, I3: a job ends once; it leaves each state once.
    unique_where("uq_job_transitions_step", ("job_id", "from_state"), "applied"),
    sa.Index("ix_job_transitions_job_id", "job_id", "id"),
)

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("row_id", RowId, primary_key=True, autoincrement=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("tenant", sa.Text),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("job_id", sa.Text),
    sa.Column("provider", sa.Text),
    sa.Column("sequence", sa.Integer),
    sa.Column("position", sa.BigInteger, unique=True),  # given after commit, gapless
    sa.Column("occurred_at", Instant, nullable=False),
    sa.Column("data", Document, nullable=False),
    sa.Column("relayed_at", Instant),
    sa.Column("relay_tries", sa.Integer, nullable=False),
    sa.Column("relay_starts", sa.Integer, nullable=False, server_default=sa.text("0")),  # counted, and never ended
    sa.Column("relay_at", Instant),  # not before: a relay of it took its worker along, or is under way
    sa.Column("parked_at", Instant),  # could not be relayed; a dead letter says why
    # One order of events per job.
    sa.UniqueConstraint("job_id", "sequence"),
    sa.Index(
        "ix_outbox_unrelayed",
        "row_id",
        sqlite_where=sa.text("relayed_at IS NULL AND parked_at IS NULL"),
        postgresql_where=sa.text("relayed_at IS NULL AND parked_at IS NULL"),
    ),
)

handler_runs = sa.Table(
    "handler_runs",
    metadata,
    sa.Column("id", RowId, primary_key=True, autoincrement=True),
    sa.Column("event_id", sa.Text, nullable=False),
    sa.Column("handler", sa.Text, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("starts", sa.Integer, nullable=False, server_default=sa.text("0")),  # of those that never ended, in a row
    sa.Column("next_try_at", Instant),  # NULL once done or dead
    sa.Column("lease_token", sa.Text),
    sa.Column("lease_until", Instant),
    sa.Column("done_at", Instant),
    sa.Column("first_failed_at", Instant),
    sa.Column("error", sa.Text),
    # An event reaches a handler's mark once.
    sa.UniqueConstraint("event_id", "handler"),
    due_index("handler_runs", "next_try_at"),
)

dead_letters = sa.Table(
    "dead_letters",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("ref", sa.Text, nullable=False),
    sa.Column("job_id", sa.Text),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("evidence", Document),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("first_failed_at", Instant, nullable=False),
    sa.Column("last_failed_at", Instant, nullable=False),
    sa.Column("redriven_at", Instant),
    sa.Column("redriven_by", sa.Text),
    sa.Column("discarded_at", Instant),
    sa.Column("discarded_by", sa.Text),
    # One open letter per failing thing, however often its failure is reported.
    unique_where("uq_dead_letters_open", ("kind", "ref"), "redriven_at IS NULL AND discarded_at IS NULL"),
    sa.Index("ix_dead_letters_tenant_id", "tenant", "id"),
    sa.Index("ix_dead_letters_kind_ref", "kind", "ref"),
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id"), nullable=False),
    sa.Column("created_at", Instant, nullable=False),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False, unique=True),  # SHA-256 of the key; the key itself is never stored
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("revoked_at", Instant),
    sa.CheckConstraint("role IN ('viewer', 'operator', 'admin')", name="role"),
)

provider_accounts = sa.Table(
    "provider_accounts",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("paused_at", Instant),
    sa.Column("blocked_until", Instant),  # the provider said "later" (429, Retry-After)
    sa.Column("next_request_at", Instant),  # the rate budget: when the next request may leave
    # The breaker (jobs.core.breaker): all of it is NULL or 0 while calls go well.
    sa.Column("failures", Document),  # calls since the last answer: [about what, when, whether nobody was there]
    sa.Column("outage_at", Instant),  # since when nothing but probes is sent
    sa.Column("outage_reason", sa.Text),  # what the call came to that opened it
    sa.Column("probes", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_probe_at", Instant),
    sa.Column("probe_ref", sa.Text),
    sa.Column("probe_until", Instant),
    # The pace at which work that has piled up is taken on (jobs.services.accounts.pacing).
    sa.Column("pace_per_s", sa.Integer),
    sa.Column("pace_until", Instant),
    sa.Column("pace_second", Instant),  # the second that is being spent from, and
    sa.Column("pace_taken", sa.Integer),  # what was taken in it
    sa.CheckConstraint("(outage_at IS NULL) = (next_probe_at IS NULL)", name="outage"),
    sa.CheckConstraint("probe_ref IS NULL OR outage_at IS NOT NULL", name="probe"),
)

counters = sa.Table(
    "counters",
    metadata,
    # outbox_position: the last position given. epoch:<sweep>: the fencing token of its lock.
    # learned_transition: the last row of history that durations were learned from.
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.BigInteger, nullable=False),
)

heartbeats = sa.Table(
    "heartbeats",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("beat_at", Instant, nullable=False),
    sa.Column("period_s", sa.Float, nullable=False),
    sa.Column("missed_at", Instant),  # set while missing: one heartbeat.missed per silence
)
