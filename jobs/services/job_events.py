"""Events of a job, one at a time. Batches of observations write theirs themselves (``jobs.services.observe``)."""

from __future__ import annotations

from jobs.core.events import EventType
from jobs.services.documents import Row, job_document
from jobs.storage.database import Transaction
from jobs.storage.outbox import append_event


def append_job_event(tx: Transaction, event_type: EventType, job: Row) -> str:
    """Writes that something happened to a job, and returns the event's id.

    Args:
        tx: The open transaction, which is that of the change.
        event_type: What happened.
        job: The row afterwards; its ``event_count`` has counted this event.
    """
    return append_event(
        tx,
        event_type,
        tenant=job["tenant"],
        data={"job": job_document(job, with_input=False)},
        job_id=job["id"],
        provider=job["provider"],
        sequence=job["event_count"],
    )
