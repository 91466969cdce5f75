"""Claims for sweeps: what is due, fairly over the providers, within their budgets, in one short transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest

from jobs.ids import new_token
from jobs.services import budgets, outages, pacing
from jobs.services.runtime import Runtime
from jobs.services.work import LEASE
from jobs.storage.database import Transaction
from jobs.storage.jobs import due_jobs, has_due_jobs, lease_jobs
from jobs.storage.premise import Premise, always


def claim_due(runtime: Runtime, kind: str, limit: int, *, premise: Premise = always) -> list[tuple[str, str]]:
    """Leases due jobs, each under a token that its message carries.

    Providers take turns, the longest due of each first, so that one with a thousand jobs does not hold up another's
    single one. What a budget does not allow stays due, in its order.

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
        if not has_due_jobs(tx, kind):
            return []
    with runtime.database.write() as tx:
        premise(tx)
        due = {name: _due_of(tx, runtime, kind, provider=name, limit=limit) for name in sorted(runtime.providers)}
        wanted, token = _take_turns(list(due.values()))[:limit], new_token()
        leased = lease_jobs(tx, wanted, token=token, until=tx.now + LEASE)
        _spend(tx, runtime, due, leased)
    return [(job_id, token) for job_id in wanted if job_id in leased]


def _due_of(tx: Transaction, runtime: Runtime, kind: str, *, provider: str, limit: int) -> list[str]:
    room = budgets.find_room(tx, runtime.providers[provider], limit=limit)
    if room == 0:
        return outages.claim_probe(tx, provider, kind)
    due = due_jobs(tx, kind, limit=room, providers=[provider])
    if due and due[0]["due_at"] < tx.now - pacing.LATE:  # what has waited for so long does not wait alone
        room = pacing.find_room(pacing.begin(tx, provider), now=tx.now, limit=room)
    return [row["id"] for row in due[:room]]


def _take_turns(queues: Sequence[Sequence[str]]) -> list[str]:
    return [job_id for job_id in chain.from_iterable(zip_longest(*queues)) if job_id is not None]


def _spend(tx: Transaction, runtime: Runtime, due: Mapping[str, Sequence[str]], leased: set[str]) -> None:
    for name, job_ids in due.items():
        budgets.take(tx, runtime.providers[name], len(leased.intersection(job_ids)))
