"""Claims of what is due: in turns over the providers and their tenants, within budgets, in one short transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import TypeVar

from jobs.core.backoff import Rng
from jobs.ids import new_token
from jobs.services.accounts import budgets, outages, pacing
from jobs.services.runtime import Runtime
from jobs.services.work import LEASE
from jobs.storage.database import Transaction
from jobs.storage.jobs import has_due_jobs, lease_jobs
from jobs.storage.premise import Premise, always
from jobs.storage.turns import due_in_turn, due_tenants

T = TypeVar("T")


def claim_due(runtime: Runtime, kind: str, limit: int, *, premise: Premise = always) -> list[tuple[str, str]]:
    """Leases due jobs, each under a token that its message carries.

    Providers take turns, and the tenants of each, the longest due first, so that one with a thousand jobs does not
    hold up another's single one. What a budget does not allow stays due.

    Args:
        runtime: The process's parts.
        kind: ``submit``, ``poll`` or ``cancel``.
        limit: Jobs at most.
        premise: Checked in the transaction.

    Returns:
        (job id, lease token), in the order in which they should be worked on.

    Raises:
        Stale: The premise failed.
    """
    with runtime.database.read() as tx:
        tenants = due_tenants(tx, kind, sorted(runtime.providers)) if has_due_jobs(tx, kind) else {}
    if not tenants:
        return []
    with runtime.database.write() as tx:
        premise(tx)
        due = {
            name: _due_of(tx, runtime, kind, provider=name, tenants=_from_anywhere(names, runtime.rng), limit=limit)
            for name, names in tenants.items()
        }
        wanted, token = _take_turns(list(due.values()))[:limit], new_token()
        leased = lease_jobs(tx, wanted, token=token, until=tx.now + LEASE)
        _spend(tx, runtime, due, leased)
    return [(job_id, token) for job_id in wanted if job_id in leased]


def claim_next(runtime: Runtime, kind: str, *, provider: str, after: str) -> tuple[str, str] | None:
    """Leases one more due job of a provider, of the tenant whose turn comes after this one; None where there is none.

    Never a probe: those are the sweeps' to choose.
    """
    with runtime.database.read() as tx:
        tenants = due_tenants(tx, kind, [provider]).get(provider, [])
    if not tenants:
        return None
    place = sum(name <= after for name in tenants)
    turns, token = _ring(tenants, place), new_token()
    with runtime.database.write() as tx:
        entry = runtime.providers[provider]
        room = budgets.find_room(tx, entry, limit=1)
        due = [row["id"] for row in due_in_turn(tx, kind, provider, tenants=turns, limit=room)]
        leased = lease_jobs(tx, due, token=token, until=tx.now + LEASE)
        budgets.take(tx, entry, len(leased))
    return next(((job_id, token) for job_id in leased), None)


def _due_of(
    tx: Transaction, runtime: Runtime, kind: str, *, provider: str, tenants: Sequence[str], limit: int
) -> list[str]:
    room = budgets.find_room(tx, runtime.providers[provider], limit=limit)
    if room == 0:
        return outages.claim_probe(tx, provider, kind, tenants)
    due = due_in_turn(tx, kind, provider, tenants=tenants, limit=room)
    if any(row["due_at"] < tx.now - pacing.LATE for row in due):  # what has waited for so long does not wait alone
        room = pacing.find_room(pacing.begin(tx, provider), now=tx.now, limit=room)
    return [row["id"] for row in due[:room]]


def _from_anywhere(tenants: Sequence[str], rng: Rng) -> Sequence[str]:
    """The tenants from one of them on, so that none is always the last where there is not room for all."""
    return _ring(tenants, int(rng.uniform(0, len(tenants))))


def _ring(items: Sequence[T], place: int) -> Sequence[T]:
    start = place % len(items)
    return [*items[start:], *items[:start]]


def _take_turns(queues: Sequence[Sequence[str]]) -> list[str]:
    return [job_id for job_id in chain.from_iterable(zip_longest(*queues)) if job_id is not None]


def _spend(tx: Transaction, runtime: Runtime, due: Mapping[str, Sequence[str]], leased: set[str]) -> None:
    for name, job_ids in due.items():
        budgets.take(tx, runtime.providers[name], len(leased.intersection(job_ids)))
