"""Whose event it is: the attempt its run belongs to, else the one its callback token names.

The body is signed and the URL is not, so where both name an attempt and disagree, the body's word counts: a recorded
event that is posted to another attempt's URL must not speak of that attempt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from jobs.storage.database import Transaction
from jobs.storage.schema import job_attempts, jobs


@dataclass(frozen=True, slots=True)
class Claim:
    """What an event says about whose it is."""

    provider: str
    provider_job_id: str | None
    token: str | None


@dataclass(frozen=True, slots=True)
class Owner:
    """The attempt an event speaks of."""

    job_id: str
    attempt: int
    tenant: str


def find_owners(tx: Transaction, claims: Sequence[Claim]) -> Mapping[Claim, Owner]:
    """The owners of some events, in two queries; what has none is left out."""
    columns = job_attempts.c
    runs = {(claim.provider, claim.provider_job_id) for claim in claims if claim.provider_job_id}
    tokens = {(claim.provider, claim.token) for claim in claims if claim.token}
    by_run = _find(tx, columns.provider_job_id, runs)
    by_token = _find(tx, columns.token, tokens)
    found = {
        claim: by_run.get((claim.provider, claim.provider_job_id)) or by_token.get((claim.provider, claim.token))
        for claim in claims
    }
    return {claim: owner for claim, owner in found.items() if owner is not None}


def _find(tx: Transaction, column: sa.Column[Any], wanted: set[tuple[str, str]]) -> dict[tuple[str, str | None], Owner]:
    if not wanted:
        return {}
    columns = job_attempts.c
    statement = (
        sa.select(columns.provider, column.label("key"), columns.job_id, columns.number, jobs.c.tenant)
        .join(jobs, jobs.c.id == columns.job_id)
        .where(sa.tuple_(columns.provider, column).in_(sorted(wanted)))
    )
    return {(row.provider, row.key): Owner(row.job_id, row.number, row.tenant) for row in tx.execute(statement)}
