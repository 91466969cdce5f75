"""Which dead letters: the filters of the list and of a redrive of many, as conditions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from jobs.storage.dead_letters import is_open
from jobs.storage.schema import dead_letters, jobs

_l = dead_letters.c


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which dead letters: each filter that is set must hold.

    Attributes:
        provider: The account the failed thing, or its job, belongs to.
        endpoint_id: Of failed deliveries.
        reason: Part of the reason, in upper or lower case.
        since: Those whose last failure was then or later.
        until: Those whose last failure was before.
    """

    kind: str | None = None
    job_id: str | None = None
    provider: str | None = None
    endpoint_id: str | None = None
    reason: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    is_open: bool | None = None


def conditions_of(wanted: LetterFilter) -> list[sa.ColumnElement[bool]]:
    """The filter as conditions on ``dead_letters``."""
    return [*_by_value(wanted), *_by_evidence(wanted), *_by_time(wanted)]


def _by_value(wanted: LetterFilter) -> Iterator[sa.ColumnElement[bool]]:
    if wanted.kind is not None:
        yield _l.kind == wanted.kind
    if wanted.job_id is not None:
        yield _l.job_id == wanted.job_id
    if wanted.reason is not None:
        yield _l.reason.icontains(wanted.reason, autoescape=True)
    if wanted.is_open is not None:
        yield is_open() if wanted.is_open else ~is_open()


def _by_evidence(wanted: LetterFilter) -> Iterator[sa.ColumnElement[bool]]:
    if wanted.provider is not None:
        its_jobs = sa.select(jobs.c.id).where(jobs.c.id == _l.job_id, jobs.c.provider == wanted.provider)
        yield sa.or_(_l.evidence["provider"].as_string() == wanted.provider, its_jobs.exists())
    if wanted.endpoint_id is not None:
        yield _l.evidence["endpoint_id"].as_string() == wanted.endpoint_id


def _by_time(wanted: LetterFilter) -> Iterator[sa.ColumnElement[bool]]:
    if wanted.since is not None:
        yield _l.last_failed_at >= wanted.since
    if wanted.until is not None:
        yield _l.last_failed_at < wanted.until
