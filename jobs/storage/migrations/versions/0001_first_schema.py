"""The first schema: jobs, attempts, history, inbox, outbox, handlers, dead letters, keys and counters."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "alarms",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("raised_at", sa.BigInteger(), nullable=True),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_alarms")),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("role IN ('viewer', 'operator', 'admin')", name=op.f("ck_api_keys_role")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("digest", name=op.f("uq_api_keys_digest")),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_counters")),
    )
    op.create_table(
        "dead_letters",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("first_failed_at", sa.BigInteger(), nullable=False),
        sa.Column("last_failed_at", sa.BigInteger(), nullable=False),
        sa.Column("redriven_at", sa.BigInteger(), nullable=True),
        sa.Column("redriven_by", sa.Text(), nullable=True),
        sa.Column("discarded_at", sa.BigInteger(), nullable=True),
        sa.Column("discarded_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dead_letters")),
    )
    op.create_index("ix_dead_letters_kind_ref", "dead_letters", ["kind", "ref"], unique=False)
    op.create_index("ix_dead_letters_tenant_id", "dead_letters", ["tenant", "id"], unique=False)
    op.create_index(
        "uq_dead_letters_open",
        "dead_letters",
        ["kind", "ref"],
        unique=True,
        sqlite_where=sa.text("redriven_at IS NULL AND discarded_at IS NULL"),
        postgresql_where=sa.text("redriven_at IS NULL AND discarded_at IS NULL"),
    )
    op.create_table(
        "durations",
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("samples_s", sa.JSON(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("provider", "model", name=op.f("pk_durations")),
    )
    op.create_table(
        "endpoints",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("sees_fleet", sa.Boolean(), nullable=False),
        sa.Column("rate_per_s", sa.Float(), nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False),
        sa.Column("secrets", sa.JSON(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("disabled_at", sa.BigInteger(), nullable=True),
        sa.Column("disabled_reason", sa.Text(), nullable=True),
        sa.Column("failing_since", sa.BigInteger(), nullable=True),
        sa.Column("last_failed_at", sa.BigInteger(), nullable=True),
        sa.Column("next_send_at", sa.BigInteger(), nullable=True),
        sa.Column("not_before", sa.BigInteger(), nullable=True),
        sa.Column("recover_next_at", sa.BigInteger(), nullable=True),
        sa.Column("recover_since", sa.BigInteger(), nullable=True),
        sa.Column("recover_until", sa.BigInteger(), nullable=True),
        sa.Column("recover_after", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("(state = 'disabled') = (disabled_at IS NOT NULL)", name=op.f("ck_endpoints_disabled")),
        sa.CheckConstraint("kind IN ('subscribed', 'callback')", name=op.f("ck_endpoints_kind")),
        sa.CheckConstraint(
            "state = 'enabled' OR next_send_at IS NULL", name=op.f("ck_endpoints_no_lane_while_disabled")
        ),
        sa.CheckConstraint("state IN ('enabled', 'disabled')", name=op.f("ck_endpoints_state")),
        sa.CheckConstraint("rate_per_s > 0 AND concurrency > 0", name=op.f("ck_endpoints_bounds")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_endpoints")),
    )
    op.create_index(
        "ix_endpoints_next_send_at",
        "endpoints",
        ["next_send_at"],
        unique=False,
        sqlite_where=sa.text("next_send_at IS NOT NULL"),
        postgresql_where=sa.text("next_send_at IS NOT NULL"),
    )
    op.create_index(
        "ix_endpoints_recover_next_at",
        "endpoints",
        ["recover_next_at"],
        unique=False,
        sqlite_where=sa.text("recover_next_at IS NOT NULL"),
        postgresql_where=sa.text("recover_next_at IS NOT NULL"),
    )
    op.create_index("ix_endpoints_tenant_id", "endpoints", ["tenant", "id"], unique=False)
    op.create_index(
        "uq_endpoints_callback",
        "endpoints",
        ["tenant", "url"],
        unique=True,
        sqlite_where=sa.text("kind = 'callback'"),
        postgresql_where=sa.text("kind = 'callback'"),
    )
    op.create_table(
        "event_bodies",
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_event_bodies")),
    )
    op.create_table(
        "handler_runs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("handler", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("starts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_try_at", sa.BigInteger(), nullable=True),
        sa.Column("lease_token", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("done_at", sa.BigInteger(), nullable=True),
        sa.Column("first_failed_at", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_handler_runs")),
        sa.UniqueConstraint("event_id", "handler", name=op.f("uq_handler_runs_event_id_handler")),
    )
    op.create_index(
        "ix_handler_runs_next_try_at",
        "handler_runs",
        ["next_try_at"],
        unique=False,
        sqlite_where=sa.text("next_try_at IS NOT NULL"),
        postgresql_where=sa.text("next_try_at IS NOT NULL"),
    )
    op.create_table(
        "heartbeats",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("beat_at", sa.BigInteger(), nullable=False),
        sa.Column("period_s", sa.Float(), nullable=False),
        sa.Column("missed_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_heartbeats")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("provider_job_id", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("event_count", sa.Integer(), nullable=False),
        sa.Column("adopt", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("input", sa.JSON(), nullable=False),
        sa.Column("output", sa.JSON(), nullable=True),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.Column("links", sa.JSON(), nullable=True),
        sa.Column("artifacts", sa.JSON(), nullable=True),
        sa.Column("outcome", sa.JSON(), nullable=True),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("callback_url", sa.Text(), nullable=True),
        sa.Column("progress", sa.JSON(), nullable=True),
        sa.Column("cost", sa.Float(), nullable=True),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.Column("late_outcome", sa.JSON(), nullable=True),
        sa.Column("review_reason", sa.Text(), nullable=True),
        sa.Column("review_detail", sa.Text(), nullable=True),
        sa.Column("review_since", sa.BigInteger(), nullable=True),
        sa.Column("expected_s", sa.Float(), nullable=True),
        sa.Column("deadline_s", sa.Float(), nullable=False),
        sa.Column("expected_at", sa.BigInteger(), nullable=True),
        sa.Column("review_at", sa.BigInteger(), nullable=True),
        sa.Column("deadline_at", sa.BigInteger(), nullable=False),
        sa.Column("overdue_at", sa.BigInteger(), nullable=True),
        sa.Column("cancel_requested_at", sa.BigInteger(), nullable=True),
        sa.Column("failing", sa.Boolean(), nullable=False),
        sa.Column("next_submit_at", sa.BigInteger(), nullable=True),
        sa.Column("next_poll_at", sa.BigInteger(), nullable=True),
        sa.Column("next_cancel_at", sa.BigInteger(), nullable=True),
        sa.Column("next_alarm_at", sa.BigInteger(), nullable=True),
        sa.Column("submit_tries", sa.Integer(), nullable=False),
        sa.Column("poll_count", sa.Integer(), nullable=False),
        sa.Column("polled_at", sa.BigInteger(), nullable=True),
        sa.Column("poll_failures", sa.Integer(), nullable=False),
        sa.Column("missing_reads", sa.Integer(), nullable=False),
        sa.Column("cancel_tries", sa.Integer(), nullable=False),
        sa.Column("starts", sa.Integer(), nullable=False),
        sa.Column("cancel_starts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("lease_token", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("submitted_at", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(state IN ('canceled', 'failed', 'succeeded')) = (finished_at IS NOT NULL)", name=op.f("ck_jobs_finished")
        ),
        sa.CheckConstraint(
            "review_reason IS NULL OR review_reason IN ('overdue', 'ambiguous_submit', 'conflicting_outcome', 'unknown_status', 'deadline', 'budget', 'compensation_failed')",
            name=op.f("ck_jobs_review"),
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'running', 'succeeded', 'failed', 'canceled')", name=op.f("ck_jobs_state")
        ),
        sa.CheckConstraint("finished_at IS NULL OR next_submit_at IS NULL", name=op.f("ck_jobs_no_submit_after_end")),
        sa.CheckConstraint("version > 0 AND attempt > 0", name=op.f("ck_jobs_counters")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index(
        "ix_jobs_lease_until",
        "jobs",
        ["lease_until"],
        unique=False,
        sqlite_where=sa.text("lease_until IS NOT NULL"),
        postgresql_where=sa.text("lease_until IS NOT NULL"),
    )
    op.create_index(
        "ix_jobs_next_alarm_at",
        "jobs",
        ["next_alarm_at"],
        unique=False,
        sqlite_where=sa.text("next_alarm_at IS NOT NULL"),
        postgresql_where=sa.text("next_alarm_at IS NOT NULL"),
    )
    op.create_index(
        "ix_jobs_next_cancel_at",
        "jobs",
        ["next_cancel_at"],
        unique=False,
        sqlite_where=sa.text("next_cancel_at IS NOT NULL"),
        postgresql_where=sa.text("next_cancel_at IS NOT NULL"),
    )
    op.create_index(
        "ix_jobs_next_poll_at",
        "jobs",
        ["next_poll_at"],
        unique=False,
        sqlite_where=sa.text("next_poll_at IS NOT NULL"),
        postgresql_where=sa.text("next_poll_at IS NOT NULL"),
    )
    op.create_index(
        "ix_jobs_next_submit_at",
        "jobs",
        ["next_submit_at"],
        unique=False,
        sqlite_where=sa.text("next_submit_at IS NOT NULL"),
        postgresql_where=sa.text("next_submit_at IS NOT NULL"),
    )
    op.create_index("ix_jobs_provider_state", "jobs", ["provider", "state"], unique=False)
    op.create_index("ix_jobs_tenant_id", "jobs", ["tenant", "id"], unique=False)
    op.create_index(
        "ix_jobs_turns_next_cancel_at",
        "jobs",
        ["provider", "tenant", "next_cancel_at"],
        unique=False,
        sqlite_where=sa.text("next_cancel_at IS NOT NULL"),
        postgresql_where=sa.text("next_cancel_at IS NOT NULL"),
    )
    op.create_index(
        "ix_jobs_turns_next_poll_at",
        "jobs",
        ["provider", "tenant", "next_poll_at"],
        unique=False,
        sqlite_where=sa.text("next_poll_at IS NOT NULL"),
        postgresql_where=sa.text("next_poll_at IS NOT NULL"),
    )
    op.create_index(
        "ix_jobs_turns_next_submit_at",
        "jobs",
        ["provider", "tenant", "next_submit_at"],
        unique=False,
        sqlite_where=sa.text("next_submit_at IS NOT NULL"),
        postgresql_where=sa.text("next_submit_at IS NOT NULL"),
    )
    op.create_table(
        "outbox",
        sa.Column("row_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("provider", sa.Text(), nullable=True),
        sa.Column("sequence", sa.Integer(), nullable=True),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("occurred_at", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("relayed_at", sa.BigInteger(), nullable=True),
        sa.Column("relay_tries", sa.Integer(), nullable=False),
        sa.Column("relay_starts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("relay_at", sa.BigInteger(), nullable=True),
        sa.Column("parked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("row_id", name=op.f("pk_outbox")),
        sa.UniqueConstraint("id", name=op.f("uq_outbox_id")),
        sa.UniqueConstraint("job_id", "sequence", name=op.f("uq_outbox_job_id_sequence")),
        sa.UniqueConstraint("position", name=op.f("uq_outbox_position")),
    )
    op.create_index(
        "ix_outbox_unrelayed",
        "outbox",
        ["row_id"],
        unique=False,
        sqlite_where=sa.text("relayed_at IS NULL AND parked_at IS NULL"),
        postgresql_where=sa.text("relayed_at IS NULL AND parked_at IS NULL"),
    )
    op.create_table(
        "provider_accounts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("paused_at", sa.BigInteger(), nullable=True),
        sa.Column("blocked_until", sa.BigInteger(), nullable=True),
        sa.Column("next_request_at", sa.BigInteger(), nullable=True),
        sa.Column("failures", sa.JSON(), nullable=True),
        sa.Column("outage_at", sa.BigInteger(), nullable=True),
        sa.Column("outage_reason", sa.Text(), nullable=True),
        sa.Column("probes", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_probe_at", sa.BigInteger(), nullable=True),
        sa.Column("probe_ref", sa.Text(), nullable=True),
        sa.Column("probe_until", sa.BigInteger(), nullable=True),
        sa.Column("pace_per_s", sa.Integer(), nullable=True),
        sa.Column("pace_until", sa.BigInteger(), nullable=True),
        sa.Column("pace_second", sa.BigInteger(), nullable=True),
        sa.Column("pace_taken", sa.Integer(), nullable=True),
        sa.CheckConstraint("(outage_at IS NULL) = (next_probe_at IS NULL)", name=op.f("ck_provider_accounts_outage")),
        sa.CheckConstraint("probe_ref IS NULL OR outage_at IS NOT NULL", name=op.f("ck_provider_accounts_probe")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_provider_accounts")),
    )
    op.create_table(
        "provider_standings",
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("recent", sa.JSON(), nullable=False),
        sa.Column("degraded_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("provider", name=op.f("pk_provider_standings")),
    )
    op.create_table(
        "quarantined_requests",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=True),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quarantined_requests")),
    )
    op.create_index("ix_quarantined_requests_provider_id", "quarantined_requests", ["provider", "id"], unique=False)
    op.create_index("ix_quarantined_requests_received_at", "quarantined_requests", ["received_at"], unique=False)
    op.create_table(
        "redrives",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("with_fleet", sa.Boolean(), nullable=False),
        sa.Column("asked_by", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("filters", sa.JSON(), nullable=False),
        sa.Column("rate_per_s", sa.Float(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("last_letter", sa.Text(), nullable=True),
        sa.Column("after_letter", sa.Text(), nullable=True),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("redriven", sa.Integer(), nullable=False),
        sa.Column("noop", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=True),
        sa.Column("starts", sa.Integer(), nullable=False),
        sa.Column("lease_token", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("(state = 'running') = (finished_at IS NULL)", name=op.f("ck_redrives_finished")),
        sa.CheckConstraint("(state = 'running') = (next_at IS NOT NULL)", name=op.f("ck_redrives_due_while_running")),
        sa.CheckConstraint("state IN ('running', 'done', 'canceled', 'failed')", name=op.f("ck_redrives_state")),
        sa.CheckConstraint("rate_per_s > 0", name=op.f("ck_redrives_rate")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_redrives")),
    )
    op.create_index(
        "ix_redrives_next_at",
        "redrives",
        ["next_at"],
        unique=False,
        sqlite_where=sa.text("next_at IS NOT NULL"),
        postgresql_where=sa.text("next_at IS NOT NULL"),
    )
    op.create_index("ix_redrives_tenant_id", "redrives", ["tenant", "id"], unique=False)
    op.create_index(
        "uq_redrives_key",
        "redrives",
        ["tenant", "with_fleet", "idempotency_key"],
        unique=True,
        sqlite_where=sa.text("idempotency_key IS NOT NULL"),
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
    )
    op.create_table(
        "signing_secrets",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("secrets", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_signing_secrets")),
    )
    op.create_table(
        "spend",
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("amount", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("provider", "tenant", "currency", "day", name=op.f("pk_spend")),
    )
    op.create_table(
        "artifacts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("link", sa.JSON(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("next_fetch_at", sa.BigInteger(), nullable=True),
        sa.Column("starts", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("refreshes", sa.Integer(), nullable=False),
        sa.Column("lease_token", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("(state = 'stored') = (path IS NOT NULL)", name=op.f("ck_artifacts_stored")),
        sa.CheckConstraint("state IN ('pending', 'stored', 'rejected', 'expired')", name=op.f("ck_artifacts_state")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_artifacts_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifacts")),
        sa.UniqueConstraint("job_id", "attempt", "position", name=op.f("uq_artifacts_job_id_attempt_position")),
    )
    op.create_index(
        "ix_artifacts_next_fetch_at",
        "artifacts",
        ["next_fetch_at"],
        unique=False,
        sqlite_where=sa.text("next_fetch_at IS NOT NULL"),
        postgresql_where=sa.text("next_fetch_at IS NOT NULL"),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("endpoint_id", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("starts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_try_at", sa.BigInteger(), nullable=True),
        sa.Column("lease_token", sa.Text(), nullable=True),
        sa.Column("first_failed_at", sa.BigInteger(), nullable=True),
        sa.Column("occurred_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(state = 'pending') = (next_try_at IS NOT NULL)", name=op.f("ck_deliveries_due_while_pending")
        ),
        sa.CheckConstraint("state = 'pending' OR lease_token IS NULL", name=op.f("ck_deliveries_no_lease_after_end")),
        sa.CheckConstraint(
            "state IN ('pending', 'succeeded', 'failed', 'held', 'dropped')", name=op.f("ck_deliveries_state")
        ),
        sa.CheckConstraint("attempts >= tries AND tries >= 0", name=op.f("ck_deliveries_counters")),
        sa.ForeignKeyConstraint(["endpoint_id"], ["endpoints.id"], name=op.f("fk_deliveries_endpoint_id")),
        sa.ForeignKeyConstraint(["event_id"], ["event_bodies.event_id"], name=op.f("fk_deliveries_event_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("event_id", "endpoint_id", name=op.f("uq_deliveries_event_id_endpoint_id")),
    )
    op.create_index("ix_deliveries_endpoint_id", "deliveries", ["endpoint_id", "id"], unique=False)
    op.create_index("ix_deliveries_job_id", "deliveries", ["job_id"], unique=False)
    op.create_index(
        "ix_deliveries_lane",
        "deliveries",
        ["endpoint_id", "next_try_at"],
        unique=False,
        sqlite_where=sa.text("next_try_at IS NOT NULL"),
        postgresql_where=sa.text("next_try_at IS NOT NULL"),
    )
    op.create_index(
        "ix_deliveries_leased",
        "deliveries",
        ["endpoint_id"],
        unique=False,
        sqlite_where=sa.text("lease_token IS NOT NULL"),
        postgresql_where=sa.text("lease_token IS NOT NULL"),
    )
    op.create_index("ix_deliveries_tenant_id", "deliveries", ["tenant", "id"], unique=False)
    op.create_table(
        "extra_runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("provider_job_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("cost", sa.Float(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("starts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_check_at", sa.BigInteger(), nullable=True),
        sa.Column("lease_token", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("settled", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("found_at", sa.BigInteger(), nullable=False),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "settled IS NULL OR settled IN ('ended', 'not_ours', 'left')", name=op.f("ck_extra_runs_settled")
        ),
        sa.CheckConstraint("settled IS NULL OR next_check_at IS NULL", name=op.f("ck_extra_runs_no_work_after_end")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_extra_runs_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_extra_runs")),
        sa.UniqueConstraint("provider", "provider_job_id", name=op.f("uq_extra_runs_provider_provider_job_id")),
    )
    op.create_index(
        "ix_extra_runs_next_check_at",
        "extra_runs",
        ["next_check_at"],
        unique=False,
        sqlite_where=sa.text("next_check_at IS NOT NULL"),
        postgresql_where=sa.text("next_check_at IS NOT NULL"),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_idempotency_keys_job_id")),
        sa.PrimaryKeyConstraint("tenant", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_table(
        "inbox_events",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.Column("delivery_id", sa.Text(), nullable=True),
        sa.Column("dedupe_key", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=True),
        sa.Column("scheme", sa.Text(), nullable=False),
        sa.Column("secret_index", sa.Integer(), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("fact", sa.Text(), nullable=True),
        sa.Column("provider_job_id", sa.Text(), nullable=True),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("duplicates", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("lease_token", sa.Text(), nullable=True),
        sa.Column("next_try_at", sa.BigInteger(), nullable=True),
        sa.Column("first_failed_at", sa.BigInteger(), nullable=True),
        sa.Column("parked_until", sa.BigInteger(), nullable=True),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("processed_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(status IN ('accepted', 'parked')) = (next_try_at IS NOT NULL)",
            name=op.f("ck_inbox_events_due_while_waiting"),
        ),
        sa.CheckConstraint(
            "status IN ('accepted', 'applied', 'ignored', 'parked', 'conflict', 'quarantined', 'dead')",
            name=op.f("ck_inbox_events_status"),
        ),
        sa.CheckConstraint(
            "duplicates >= 0 AND failures >= 0 AND tries >= failures", name=op.f("ck_inbox_events_counters")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_inbox_events_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inbox_events")),
        sa.UniqueConstraint("provider", "dedupe_key", name=op.f("uq_inbox_events_provider_dedupe_key")),
    )
    op.create_index("ix_inbox_events_job_id", "inbox_events", ["job_id"], unique=False)
    op.create_index(
        "ix_inbox_events_next_try_at",
        "inbox_events",
        ["next_try_at"],
        unique=False,
        sqlite_where=sa.text("next_try_at IS NOT NULL"),
        postgresql_where=sa.text("next_try_at IS NOT NULL"),
    )
    op.create_index(
        "ix_inbox_events_parked",
        "inbox_events",
        ["provider", "provider_job_id"],
        unique=False,
        sqlite_where=sa.text("status = 'parked'"),
        postgresql_where=sa.text("status = 'parked'"),
    )
    op.create_index("ix_inbox_events_tenant_id", "inbox_events", ["tenant", "id"], unique=False)
    op.create_table(
        "job_attempts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("sending_at", sa.BigInteger(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("asks", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("provider_job_id", sa.Text(), nullable=True),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.Column("cost", sa.Float(), nullable=True),
        sa.Column("beyond_budget", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("answered_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "outcome IS NULL OR outcome IN ('accepted', 'refused', 'unknown')", name=op.f("ck_job_attempts_outcome")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_attempts_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_attempts")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_job_attempts_idempotency_key")),
        sa.UniqueConstraint("job_id", "number", name=op.f("uq_job_attempts_job_id_number")),
        sa.UniqueConstraint("provider", "token", name=op.f("uq_job_attempts_provider_token")),
    )
    op.create_index(
        "uq_job_attempts_run",
        "job_attempts",
        ["provider", "provider_job_id"],
        unique=True,
        sqlite_where=sa.text("provider_job_id IS NOT NULL"),
        postgresql_where=sa.text("provider_job_id IS NOT NULL"),
    )
    op.create_table(
        "job_transitions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("from_state", sa.Text(), nullable=False),
        sa.Column("to_state", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("provider_job_id", sa.Text(), nullable=True),
        sa.Column("event_id", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("applied", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "NOT applied OR from_state NOT IN ('canceled', 'failed', 'succeeded')",
            name=op.f("ck_job_transitions_terminal_absorbs"),
        ),
        sa.CheckConstraint(
            "NOT applied OR to_state <> from_state AND to_state <> 'pending'", name=op.f("ck_job_transitions_steps_up")
        ),
        sa.CheckConstraint(
            "from_state IN ('pending', 'running', 'succeeded', 'failed', 'canceled') AND to_state IN ('pending', 'running', 'succeeded', 'failed', 'canceled')",
            name=op.f("ck_job_transitions_states"),
        ),
        sa.CheckConstraint(
            "source IN ('submit', 'webhook', 'poll', 'operator', 'deadline', 'cancel')",
            name=op.f("ck_job_transitions_source"),
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_transitions_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_transitions")),
    )
    op.create_index("ix_job_transitions_job_id", "job_transitions", ["job_id", "id"], unique=False)
    op.create_index(
        "uq_job_transitions_step",
        "job_transitions",
        ["job_id", "from_state"],
        unique=True,
        sqlite_where=sa.text("applied"),
        postgresql_where=sa.text("applied"),
    )
    op.create_table(
        "output_streams",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("length", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.Text(), nullable=True),
        sa.Column("next_read_at", sa.BigInteger(), nullable=True),
        sa.Column("starts", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("rings", sa.Integer(), nullable=False),
        sa.Column("lease_token", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.CheckConstraint("(ended_at IS NULL) = (reason IS NULL)", name=op.f("ck_output_streams_reason")),
        sa.CheckConstraint("attempt > 0 AND generation > 0 AND length >= 0", name=op.f("ck_output_streams_counters")),
        sa.CheckConstraint(
            "ended_at IS NULL OR next_read_at IS NULL", name=op.f("ck_output_streams_no_work_after_end")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_output_streams_job_id")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_output_streams")),
    )
    op.create_index(
        "ix_output_streams_next_read_at",
        "output_streams",
        ["next_read_at"],
        unique=False,
        sqlite_where=sa.text("next_read_at IS NOT NULL"),
        postgresql_where=sa.text("next_read_at IS NOT NULL"),
    )
    op.create_table(
        "delivery_attempts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("delivery_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("ms", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("excerpt", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["delivery_id"], ["deliveries.id"], name=op.f("fk_delivery_attempts_delivery_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delivery_attempts")),
        sa.UniqueConstraint("delivery_id", "number", name=op.f("uq_delivery_attempts_delivery_id_number")),
    )
    op.create_table(
        "job_output",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["output_streams.job_id"], name=op.f("fk_job_output_job_id")),
        sa.PrimaryKeyConstraint("job_id", "generation", "offset", name=op.f("pk_job_output")),
    )


def downgrade() -> None:
    op.drop_table("job_output")
    op.drop_table("delivery_attempts")
    op.drop_index(
        "ix_output_streams_next_read_at",
        table_name="output_streams",
        sqlite_where=sa.text("next_read_at IS NOT NULL"),
        postgresql_where=sa.text("next_read_at IS NOT NULL"),
    )
    op.drop_table("output_streams")
    op.drop_index(
        "uq_job_transitions_step",
        table_name="job_transitions",
        sqlite_where=sa.text("applied"),
        postgresql_where=sa.text("applied"),
    )
    op.drop_index("ix_job_transitions_job_id", table_name="job_transitions")
    op.drop_table("job_transitions")
    op.drop_index(
        "uq_job_attempts_run",
        table_name="job_attempts",
        sqlite_where=sa.text("provider_job_id IS NOT NULL"),
        postgresql_where=sa.text("provider_job_id IS NOT NULL"),
    )
    op.drop_table("job_attempts")
    op.drop_index("ix_inbox_events_tenant_id", table_name="inbox_events")
    op.drop_index(
        "ix_inbox_events_parked",
        table_name="inbox_events",
        sqlite_where=sa.text("status = 'parked'"),
        postgresql_where=sa.text("status = 'parked'"),
    )
    op.drop_index(
        "ix_inbox_events_next_try_at",
        table_name="inbox_events",
        sqlite_where=sa.text("next_try_at IS NOT NULL"),
        postgresql_where=sa.text("next_try_at IS NOT NULL"),
    )
    op.drop_index("ix_inbox_events_job_id", table_name="inbox_events")
    op.drop_table("inbox_events")
    op.drop_table("idempotency_keys")
    op.drop_index(
        "ix_extra_runs_next_check_at",
        table_name="extra_runs",
        sqlite_where=sa.text("next_check_at IS NOT NULL"),
        postgresql_where=sa.text("next_check_at IS NOT NULL"),
    )
    op.drop_table("extra_runs")
    op.drop_index("ix_deliveries_tenant_id", table_name="deliveries")
    op.drop_index(
        "ix_deliveries_leased",
        table_name="deliveries",
        sqlite_where=sa.text("lease_token IS NOT NULL"),
        postgresql_where=sa.text("lease_token IS NOT NULL"),
    )
    op.drop_index(
        "ix_deliveries_lane",
        table_name="deliveries",
        sqlite_where=sa.text("next_try_at IS NOT NULL"),
        postgresql_where=sa.text("next_try_at IS NOT NULL"),
    )
    op.drop_index("ix_deliveries_job_id", table_name="deliveries")
    op.drop_index("ix_deliveries_endpoint_id", table_name="deliveries")
    op.drop_table("deliveries")
    op.drop_index(
        "ix_artifacts_next_fetch_at",
        table_name="artifacts",
        sqlite_where=sa.text("next_fetch_at IS NOT NULL"),
        postgresql_where=sa.text("next_fetch_at IS NOT NULL"),
    )
    op.drop_table("artifacts")
    op.drop_table("spend")
    op.drop_table("signing_secrets")
    op.drop_index(
        "uq_redrives_key",
        table_name="redrives",
        sqlite_where=sa.text("idempotency_key IS NOT NULL"),
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
    )
    op.drop_index("ix_redrives_tenant_id", table_name="redrives")
    op.drop_index(
        "ix_redrives_next_at",
        table_name="redrives",
        sqlite_where=sa.text("next_at IS NOT NULL"),
        postgresql_where=sa.text("next_at IS NOT NULL"),
    )
    op.drop_table("redrives")
    op.drop_index("ix_quarantined_requests_received_at", table_name="quarantined_requests")
    op.drop_index("ix_quarantined_requests_provider_id", table_name="quarantined_requests")
    op.drop_table("quarantined_requests")
    op.drop_table("provider_standings")
    op.drop_table("provider_accounts")
    op.drop_index(
        "ix_outbox_unrelayed",
        table_name="outbox",
        sqlite_where=sa.text("relayed_at IS NULL AND parked_at IS NULL"),
        postgresql_where=sa.text("relayed_at IS NULL AND parked_at IS NULL"),
    )
    op.drop_table("outbox")
    op.drop_index(
        "ix_jobs_turns_next_submit_at",
        table_name="jobs",
        sqlite_where=sa.text("next_submit_at IS NOT NULL"),
        postgresql_where=sa.text("next_submit_at IS NOT NULL"),
    )
    op.drop_index(
        "ix_jobs_turns_next_poll_at",
        table_name="jobs",
        sqlite_where=sa.text("next_poll_at IS NOT NULL"),
        postgresql_where=sa.text("next_poll_at IS NOT NULL"),
    )
    op.drop_index(
        "ix_jobs_turns_next_cancel_at",
        table_name="jobs",
        sqlite_where=sa.text("next_cancel_at IS NOT NULL"),
        postgresql_where=sa.text("next_cancel_at IS NOT NULL"),
    )
    op.drop_index("ix_jobs_tenant_id", table_name="jobs")
    op.drop_index("ix_jobs_provider_state", table_name="jobs")
    op.drop_index(
        "ix_jobs_next_submit_at",
        table_name="jobs",
        sqlite_where=sa.text("next_submit_at IS NOT NULL"),
        postgresql_where=sa.text("next_submit_at IS NOT NULL"),
    )
    op.drop_index(
        "ix_jobs_next_poll_at",
        table_name="jobs",
        sqlite_where=sa.text("next_poll_at IS NOT NULL"),
        postgresql_where=sa.text("next_poll_at IS NOT NULL"),
    )
    op.drop_index(
        "ix_jobs_next_cancel_at",
        table_name="jobs",
        sqlite_where=sa.text("next_cancel_at IS NOT NULL"),
        postgresql_where=sa.text("next_cancel_at IS NOT NULL"),
    )
    op.drop_index(
        "ix_jobs_next_alarm_at",
        table_name="jobs",
        sqlite_where=sa.text("next_alarm_at IS NOT NULL"),
        postgresql_where=sa.text("next_alarm_at IS NOT NULL"),
    )
    op.drop_index(
        "ix_jobs_lease_until",
        table_name="jobs",
        sqlite_where=sa.text("lease_until IS NOT NULL"),
        postgresql_where=sa.text("lease_until IS NOT NULL"),
    )
    op.drop_table("jobs")
    op.drop_table("heartbeats")
    op.drop_index(
        "ix_handler_runs_next_try_at",
        table_name="handler_runs",
        sqlite_where=sa.text("next_try_at IS NOT NULL"),
        postgresql_where=sa.text("next_try_at IS NOT NULL"),
    )
    op.drop_table("handler_runs")
    op.drop_table("event_bodies")
    op.drop_index(
        "uq_endpoints_callback",
        table_name="endpoints",
        sqlite_where=sa.text("kind = 'callback'"),
        postgresql_where=sa.text("kind = 'callback'"),
    )
    op.drop_index("ix_endpoints_tenant_id", table_name="endpoints")
    op.drop_index(
        "ix_endpoints_recover_next_at",
        table_name="endpoints",
        sqlite_where=sa.text("recover_next_at IS NOT NULL"),
        postgresql_where=sa.text("recover_next_at IS NOT NULL"),
    )
    op.drop_index(
        "ix_endpoints_next_send_at",
        table_name="endpoints",
        sqlite_where=sa.text("next_send_at IS NOT NULL"),
        postgresql_where=sa.text("next_send_at IS NOT NULL"),
    )
    op.drop_table("endpoints")
    op.drop_table("durations")
    op.drop_index(
        "uq_dead_letters_open",
        table_name="dead_letters",
        sqlite_where=sa.text("redriven_at IS NULL AND discarded_at IS NULL"),
        postgresql_where=sa.text("redriven_at IS NULL AND discarded_at IS NULL"),
    )
    op.drop_index("ix_dead_letters_tenant_id", table_name="dead_letters")
    op.drop_index("ix_dead_letters_kind_ref", table_name="dead_letters")
    op.drop_table("dead_letters")
    op.drop_table("counters")
    op.drop_table("api_keys")
    op.drop_table("alarms")
