"""Rows as the world sees them: the JSON of the API, of events and of exports, in one place.

A document holds only what JSON can say; instants are RFC 3339 UTC text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from jobs.core import instants

Document: TypeAlias = dict[str, Any]
Row: TypeAlias = Mapping[str, Any]


def job_document(row: Row, *, with_input: bool = True) -> Document:
    """A job.

    Args:
        row: A row of ``jobs``.
        with_input: Events leave the input out: it never changes, and may be large or private.
    """
    inputs = {"input": row["input"]} if with_input else {}
    return {
        "id": row["id"],
        "provider": row["provider"],
        "provider_job_id": row["provider_job_id"],
        "state": str(row["state"]),
        "version": row["version"],
        "progress": row["progress"],
        **inputs,
        "output": row["output"],
        "error": row["error"],
        "metadata": row["metadata"],
        "review": _review(row),
        "late_outcome": _late_outcome(row["late_outcome"]),
        **_times(row),
        "attempts": row["attempt"],
        "cost": row["cost"],
        "artifacts": row["artifacts"] or [],
        "pipeline": None,
    }


def artifact_document(row: Row) -> Document:
    """A result file. Its address at the provider is not told: it may be signed."""
    return {
        "id": row["id"],
        "state": row["state"],
        "content_type": row["content_type"],
        "size": row["size_bytes"],
        "sha256": row["sha256"],
        "reason": row["reason"],
        "expires_at": row["link"]["expires_at"],
    }


def transition_document(row: Row) -> Document:
    """A row of a job's history: an observation that mattered, applied or not."""
    return {
        "from": row["from_state"],
        "to": row["to_state"],
        "source": row["source"],
        "at": instants.to_text(row["at"]),
        "attempt": row["attempt"],
        "provider_job_id": row["provider_job_id"],
        "event_id": row["event_id"],
        "digest": row["digest"],
        "applied": row["applied"],
        "reason": row["reason"],
    }


def event_document(row: Row) -> Document:
    """An event: the envelope consumers receive, and its place in the list of all events."""
    return {
        "id": row["id"],
        "type": row["type"],
        "schema_version": row["schema_version"],
        "sequence": row["sequence"],
        "position": row["position"],
        "occurred_at": instants.to_text(row["occurred_at"]),
        "tenant": row["tenant"],
        "data": row["data"],
    }


def dead_letter_document(row: Row) -> Document:
    """Something that exhausted its tries, and what a person did about it."""
    return {
        "id": row["id"],
        "kind": row["kind"],
        "ref": row["ref"],
        "job": row["job_id"],
        "reason": row["reason"],
        "evidence": row["evidence"],
        "attempts": row["attempts"],
        "first_failed_at": instants.to_text(row["first_failed_at"]),
        "last_failed_at": instants.to_text(row["last_failed_at"]),
        "redriven_at": instants.to_text_or_none(row["redriven_at"]),
        "redriven_by": row["redriven_by"],
        "discarded_at": instants.to_text_or_none(row["discarded_at"]),
        "discarded_by": row["discarded_by"],
    }


_TIMES = (
    "cancel_requested_at",
    "expected_at",
    "deadline_at",
    "created_at",
    "submitted_at",
    "started_at",
    "finished_at",
)


def _times(row: Row) -> Document:
    return {name: instants.to_text_or_none(row[name]) for name in _TIMES}


def _review(row: Row) -> Document | None:
    if row["review_reason"] is None:
        return None
    return {
        "reason": str(row["review_reason"]),
        "since": instants.to_text_or_none(row["review_since"]),
        "detail": row["review_detail"],
    }


def sent_document(attempt: Row) -> Document:
    """What an attempt's submit carried. The token is of use to whoever may read the job, and to nobody else."""
    return {
        "idempotency_key": attempt["idempotency_key"],
        "reference": attempt["token"],
        "at": instants.to_text_or_none(attempt["sending_at"]),
    }


def _late_outcome(stored: Mapping[str, Any] | None) -> Document | None:
    """The provider's later word; stored as JSON, so its instant is text of another spelling."""
    if stored is None:
        return None
    return {**stored, "at": instants.to_text(instants.from_text(stored["at"]))}
