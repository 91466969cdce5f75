"""Endpoints, deliveries and attempts as the API shows them. No secret is among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobs.core import instants
from jobs.services.documents import Document

Row = Mapping[str, Any]


def endpoint_document(row: Row, *, secret: str | None = None) -> Document:
    """An endpoint.

    Args:
        row: A row of ``endpoints``.
        secret: Shown once, to whoever made or rotated it.
    """
    shown = {} if secret is None else {"secret": secret}
    return {
        "id": row["id"],
        "url": row["url"],
        "events": row["events"],
        "state": row["state"],
        **shown,
        "description": row["description"],
        "rate": f"{row['rate_per_s']:g}/s",
        "concurrency": row["concurrency"],
        "disabled_at": instants.to_text_or_none(row["disabled_at"]),
        "disabled_reason": row["disabled_reason"],
        "failing_since": instants.to_text_or_none(row["failing_since"]),
        "recovering": row["recover_next_at"] is not None,
        "created_at": instants.to_text(row["created_at"]),
        "updated_at": instants.to_text(row["updated_at"]),
    }


def delivery_document(row: Row, attempts: Iterable[Row] | None = None) -> Document:
    """A delivery; with its attempts, oldest first, where they are asked for."""
    log = {} if attempts is None else {"attempts": [attempt_document(attempt, of=row) for attempt in attempts]}
    return {
        "id": row["id"],
        "endpoint": row["endpoint_id"],
        "event": row["event_id"],
        "type": row["event_type"],
        "job": row["job_id"],
        "url": row["url"],
        "state": row["state"],
        "attempt_count": row["attempts"],
        "next_try_at": instants.to_text_or_none(row["next_try_at"]),
        "occurred_at": instants.to_text(row["occurred_at"]),
        "created_at": instants.to_text(row["created_at"]),
        "finished_at": instants.to_text_or_none(row["finished_at"]),
        **log,
    }


def attempt_document(row: Row, *, of: Row) -> Document:
    """One attempt; one whose worker was lost has no status, and says so."""
    is_open = row["ms"] is None and row["number"] == of["attempts"] and of["lease_token"] is not None
    error = row["error"] if row["ms"] is not None or is_open else "interrupted"
    return {
        "at": instants.to_text(row["at"]),
        "status": row["status"],
        "ms": row["ms"],
        "error": error,
        "excerpt": row["excerpt"],
    }
