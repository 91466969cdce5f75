"""What a tenant may read of its jobs: one, many, their history, their events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.core.observations import ReviewReason
from jobs.core.states import JobState, is_terminal
from jobs.services.documents import Document, Row, event_document, job_document, sent_document, transition_document
from jobs.services.keys import Principal, Role
from jobs.services.paging import number_place, page, text_place
from jobs.storage.attempts import get_attempt
from jobs.storage.database import Database
from jobs.storage.jobs import get_job
from jobs.storage.listing import JobFilter, list_events, list_jobs, list_transitions_after

__all__ = ["EventFilter", "JobFilter", "SeenJob", "read_events", "read_job", "read_jobs", "read_transitions"]

_SOON = timedelta(seconds=1)
#: For a job that waits for a person: nothing of ours will change it.
_LATER = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class SeenJob:
    """A job, and when it is worth asking again; None where it has ended."""

    job: Document
    ask_again_after: timedelta | None


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events: each filter that is set must hold.

    Attributes:
        type: A type, or the beginning of one and ``*``.
        after: Only those after this position.
    """

    type: str | None = None
    job_id: str | None = None
    after: int = 0


def read_job(database: Database, *, tenant: str, job_id: str) -> SeenJob:
    """One job.

    Raises:
        NotFound: There is none, or it is another tenant's.
    """
    with database.read() as tx:
        row = get_job(tx, job_id, tenant=tenant)
        job = job_document(row)
        if row["review_reason"] == ReviewReason.AMBIGUOUS_SUBMIT:
            job["review"]["sent"] = sent_document(get_attempt(tx, job_id, row["attempt"]))
        return SeenJob(job, _ask_again_after(row, tx.now))


def read_jobs(database: Database, *, tenant: str, wanted: JobFilter, cursor: str | None, limit: int) -> Document:
    """A page of a tenant's jobs, newest first.

    Raises:
        Unprocessable: The cursor is not one of ours.
    """
    before = text_place(cursor)
    with database.read() as tx:
        rows = list_jobs(tx, tenant=tenant, wanted=wanted, before=before, limit=limit + 1)
    return page(rows, limit=limit, place="id", show=job_document)


def read_transitions(database: Database, *, tenant: str, job_id: str, cursor: str | None, limit: int) -> Document:
    """A page of a job's history, oldest first.

    Raises:
        NotFound: There is no such job, or it is another tenant's.
        Unprocessable: The cursor is not one of ours.
    """
    after = number_place(cursor)
    with database.read() as tx:
        get_job(tx, job_id, tenant=tenant)
        rows = list_transitions_after(tx, job_id, after=after, limit=limit + 1)
    return page(rows, limit=limit, place="id", show=transition_document)


def read_events(
    database: Database, principal: Principal, *, wanted: EventFilter, cursor: str | None, limit: int
) -> Document:
    """A page of events in commit order. Events that belong to no tenant are an admin's to see.

    Raises:
        Unprocessable: The cursor is not one of ours.
    """
    after = number_place(cursor, start=wanted.after)
    with database.read() as tx:
        rows = list_events(
            tx,
            tenant=principal.tenant,
            with_fleet=principal.role.includes(Role.ADMIN),
            type_pattern=wanted.type,
            job_id=wanted.job_id,
            after=after,
            limit=limit + 1,
        )
    return page(rows, limit=limit, place="position", show=event_document)


def _ask_again_after(row: Row, now: datetime) -> timedelta | None:
    if is_terminal(JobState(row["state"])):
        return None
    if row["outcome"] is not None:
        return _SOON  # its files are being fetched
    due = [row[name] for name in ("next_submit_at", "next_poll_at", "next_cancel_at") if row[name] is not None]
    return max(min(due) - now, _SOON) if due else _LATER
