"""Accepting a job: everything that makes it durable is written in one transaction, before the 202.

A client's Idempotency-Key belongs to its tenant and to what it asked for. The key's row is written in the
transaction of the job, so a request that failed leaves nothing behind to be replayed, and of two equal requests at
the same moment one makes the job and both receive it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import structlog
from sqlalchemy.exc import IntegrityError

from jobs import ids
from jobs.broker import SUBMIT
from jobs.core import text
from jobs.core.errors import BadRequest, Conflict, FieldFault, NotFound, Unprocessable
from jobs.core.events import EventType
from jobs.core.observations import Json
from jobs.core.suggestions import did_you_mean
from jobs.services.addresses import check_address
from jobs.services.alarms import alarm_columns
from jobs.services.documents import Document, job_document
from jobs.services.faults import field_fault
from jobs.services.job_events import append_job_event
from jobs.services.run_book import owner_in_words
from jobs.services.runtime import ProviderEntry, Runtime
from jobs.storage.attempts import find_attempt_by_run, insert_attempt, update_attempt
from jobs.storage.database import Transaction
from jobs.storage.extra_runs import find_extra_run
from jobs.storage.idempotency import find_request, insert_request
from jobs.storage.jobs import Row, get_job, insert_job
from jobs.telemetry import span

KEY_HEADER = "Idempotency-Key"
#: Deadlines beyond this are typing mistakes, and instants beyond year 9999 do not exist.
MAX_SPAN = timedelta(days=3660)

_log = structlog.get_logger(__name__)

_KEY = re.compile(r"[\x21-\x7e]{1,255}")


@dataclass(frozen=True, slots=True)
class NewJob:
    """What a client asks for.

    Attributes:
        provider: Name of a provider entry.
        input: What the provider's adapter sends on.
        expected: Usual duration of this job; None: the provider's.
        deadline: When to stop waiting; None: the provider's.
        metadata: The client's own words, kept and filtered by.
        adopt: The provider's id of a run to take charge of, instead of submitting.
        callback_url: Where to send the end of this job.
    """

    provider: str
    input: Mapping[str, Json] = field(default_factory=dict)
    expected: timedelta | None = None
    deadline: timedelta | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    adopt: str | None = None
    callback_url: str | None = None


@dataclass(frozen=True, slots=True)
class Created:
    """The answer: the job, and whether an earlier request had made it."""

    job: Document
    replayed: bool


class _KeyTaken(Exception):
    """Another transaction took the key between our look and our write; ours must leave nothing behind."""


def create_job(runtime: Runtime, *, tenant: str, body: NewJob, key: str | None) -> Created:
    """Makes a job durable, or finds the one an equal request has made.

    Raises:
        NotFound: There is no such provider for this tenant.
        BadRequest: A key is required and there is none.
        Conflict: The run to adopt has a job already.
        AddressRefused: The guard refuses the callback URL.
        Unprocessable: The key is malformed or was used with another body; a field is not acceptable.
        Unavailable: The database did not take it: nothing was accepted.
    """
    entry = provider_for(runtime, tenant, body.provider)
    _check(runtime, body, key)
    if entry.adapter.capabilities.receives_only:
        raise field_fault("provider", f"{entry.name!r} only receives events; it runs no jobs")
    with span("create_job", clock=runtime.clock, provider=entry.name):
        try:
            created = _create(runtime, entry, tenant=tenant, body=body, key=key)
        except _KeyTaken:
            created = _create(runtime, entry, tenant=tenant, body=body, key=key)
    _log.info("job accepted", job=created.job["id"], provider=entry.name, replayed=created.replayed)
    if not created.replayed:
        runtime.broker.publish(SUBMIT, created.job["id"])
    return created


def provider_for(runtime: Runtime, tenant: str, name: str) -> ProviderEntry:
    """The provider entry of that name, where the tenant may use it.

    Raises:
        NotFound: There is none, or it serves another tenant: the answer is the same.
    """
    entry = runtime.providers.get(name)
    if entry is not None and entry.config.tenant in (None, tenant):
        return entry
    known = visible_providers(runtime, tenant)
    meant = did_you_mean(name, known)
    hint = f"did you mean {meant!r}?" if meant else f"configured: {', '.join(known) or 'none'}"
    message = f"there is no provider {text.clean(name)[:100]!r}; {hint}"
    raise NotFound(message, fields=[FieldFault("provider", message)])


def visible_providers(runtime: Runtime, tenant: str) -> list[str]:
    """Names of the provider entries a tenant may use."""
    return sorted(name for name, entry in runtime.providers.items() if entry.config.tenant in (None, tenant))


def write_job(tx: Transaction, runtime: Runtime, entry: ProviderEntry, *, tenant: str, body: NewJob) -> Row:
    """Writes a job, its first attempt and its first event; the caller's transaction makes them durable.

    Raises:
        Conflict: The run to adopt has a job already.
    """
    row = _job_row(tx, runtime, entry, tenant=tenant, body=body)
    insert_job(tx, row)
    job = get_job(tx, row["id"])
    attempt = insert_attempt(tx, job_id=job["id"], provider=entry.name, number=1, at=tx.now)
    if body.adopt is not None:
        _adopt(tx, attempt, body.adopt, tenant=tenant)
    append_job_event(tx, EventType.JOB_CREATED, job)
    return job


def _check(runtime: Runtime, body: NewJob, key: str | None) -> None:
    if key is None and runtime.settings.require_idempotency_key:
        raise BadRequest(f"send the header {KEY_HEADER}: a key of your own for this request, the same on a retry")
    if key is not None and not _KEY.fullmatch(key):
        raise field_fault(KEY_HEADER, "must be 1 to 255 visible ASCII characters")
    if body.callback_url is not None:
        check_address(runtime.guard, "callback_url", body.callback_url)


def _create(runtime: Runtime, entry: ProviderEntry, *, tenant: str, body: NewJob, key: str | None) -> Created:
    print_ = _fingerprint(body)
    with runtime.database.write() as tx:
        if key is not None and (earlier := find_request(tx, tenant=tenant, key=key)):
            return _replay(tx, earlier, print_)
        job = write_job(tx, runtime, entry, tenant=tenant, body=body)
        if key is not None and not insert_request(tx, tenant=tenant, key=key, fingerprint=print_, job_id=job["id"]):
            raise _KeyTaken
        return Created(job_document(job), replayed=False)


def _replay(tx: Transaction, earlier: Row, print_: str) -> Created:
    if earlier["fingerprint"] != print_:
        raise Unprocessable(
            f"this {KEY_HEADER} was used for another request (job {earlier['job_id']}); take a new key",
            slug="idempotency-key-reused",
            fields=[FieldFault(KEY_HEADER, "was used with another body")],
        )
    return Created(job_document(get_job(tx, earlier["job_id"])), replayed=True)


def _fingerprint(body: NewJob) -> str:
    """Of what was asked, not of how it was typed: order of keys, blanks and defaults spelled out do not matter."""
    spans = {"expected": body.expected, "deadline": body.deadline}
    asked: dict[str, Any] = {
        "provider": body.provider,
        "input": body.input,
        "metadata": body.metadata,
        "adopt": body.adopt,
        **({} if body.callback_url is None else {"callback_url": body.callback_url}),
        **{name: span and span.total_seconds() for name, span in spans.items()},
    }
    return text.fingerprint(asked)


def _job_row(tx: Transaction, runtime: Runtime, entry: ProviderEntry, *, tenant: str, body: NewJob) -> dict[str, Any]:
    row = {
        "id": ids.new_id("job", at=tx.now),
        "tenant": tenant,
        "provider": entry.name,
        "event_count": 1,
        "adopt": body.adopt,
        "model": entry.adapter.capabilities.kind(body.input),
        "input": body.input,
        "metadata": body.metadata,
        "callback_url": body.callback_url,
        "expected_s": body.expected and body.expected.total_seconds(),
        "deadline_s": (body.deadline or entry.policy.deadline).total_seconds(),
        "next_submit_at": tx.now,
        "created_at": tx.now,
    }
    return row | alarm_columns(tx, runtime.observer.forecasts, entry.policy, job=row, start=tx.now)


def _adopt(tx: Transaction, attempt: Row, run: str, *, tenant: str) -> None:
    """The attempt owns the run from the start, so a webhook finds it and nobody else can adopt it."""
    _check_unowned(tx, attempt["provider"], run, tenant=tenant)
    try:
        with tx.savepoint():
            update_attempt(tx, attempt["id"], {"provider_job_id": run})
    except IntegrityError:  # somebody adopted it between our look and our write
        _check_unowned(tx, attempt["provider"], run, tenant=tenant)
        raise


def _stopped(tx: Transaction, provider: str, run: str) -> Row | None:
    """A second run of some attempt, which is being stopped; one that turned out to be nobody's may be adopted."""
    extra = find_extra_run(tx, provider, run)
    return extra if extra is not None and extra["settled"] != "not_ours" else None


def _check_unowned(tx: Transaction, provider: str, run: str, *, tenant: str) -> None:
    owner = find_attempt_by_run(tx, provider, run) or _stopped(tx, provider, run)
    if owner is not None:
        whose = owner_in_words(tx, owner["job_id"], tenant=tenant)
        raise Conflict(f"run {run!r} belongs to {whose} already", fields=[FieldFault("adopt", "has a job already")])
