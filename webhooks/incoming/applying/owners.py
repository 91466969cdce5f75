"""Whose event it is: the attempt its run belongs to, else the one its callback token names.

The body is signed and the URL is not, so where both name an attempt and disagree, the body's word counts: a recorded
event that is posted to another attempt's URL must not speak of that attempt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jobs.storage.attempts import list_run_owners, list_token_owners
from jobs.storage.database import Transaction
from jobs.storage.jobs import list_tenants


class Claim(NamedTuple):
    """What an event says about whose it is."""

    provider: str
    provider_job_id: str | None
    token: str | None


class Owner(NamedTuple):
    """The attempt an event speaks of."""

    job_id: str
    attempt: int
    tenant: str


def find_owners(tx: Transaction, claims: Sequence[Claim]) -> Mapping[Claim, Owner]:
    """The owners of some events, in three queries at most; what has none is left out."""
    runs = {claim: (claim.provider, claim.provider_job_id) for claim in claims if claim.provider_job_id}
    by_run = list_run_owners(tx, runs.values())
    unknown = [claim for claim in claims if runs.get(claim) not in by_run]
    tokens = {claim: (claim.provider, claim.token) for claim in unknown if claim.token}
    by_token = list_token_owners(tx, tokens.values())
    named = {claim: by_run[run] for claim, run in runs.items() if run in by_run}
    named |= {claim: by_token[token] for claim, token in tokens.items() if token in by_token}
    tenants = list_tenants(tx, {job_id for job_id, _ in named.values()})
    return {claim: Owner(job_id, attempt, tenants[job_id]) for claim, (job_id, attempt) in named.items()}
