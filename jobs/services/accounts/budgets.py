"""How much may be asked of an account: not while it is paused, away or said "later", and within its rate, concurrency
and the pace of what has piled up.

Budgets live in the database, in the transaction that claims the work: a claim that rolls back gives its budget back,
and a wiped Redis forgets none. Concurrency is counted from the leases themselves. The rate is a bucket that holds one
second's worth (one request at least): ``next_request_at`` is when it will be full again, less what it holds.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from jobs.services.accounts import outages, pacing
from jobs.services.runtime import ProviderEntry
from jobs.storage.accounts import count_leases, find_account, lock_account, update_account
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row

_SECOND = timedelta(seconds=1)


def is_open(tx: Transaction, name: str, *, ref: str | None = None) -> bool:
    """Whether the account may be asked at all now; while its provider is away only the probe may, known by ``ref``."""
    account = find_account(tx, name)
    return _is_open(account, tx.now) and outages.lets_through(account, ref, tx)


def find_room(tx: Transaction, entry: ProviderEntry, *, limit: int) -> int:
    """How many requests the account may be sent now, at most ``limit``; where it is any, locks it.

    Also where it has no budgets of its own: a pace may have to be begun, or counted, after the jobs have been locked,
    and whoever writes what a call came to locks the account first.
    """
    policy = entry.policy
    if not _may_ask(find_account(tx, entry.name), tx.now):
        return 0
    account = lock_account(tx, entry.name)
    room = pacing.find_room(account, now=tx.now, limit=limit) if _may_ask(account, tx.now) else 0
    if policy.concurrency is not None:
        room = min(room, policy.concurrency - count_leases(tx, entry.name))
    if policy.rate_per_s is not None:
        room = min(room, _free_slots(account, policy.rate_per_s, now=tx.now))
    return max(room, 0)


def take(tx: Transaction, entry: ProviderEntry, count: int) -> None:
    """Spends from the rate and the pace; the leases written in the same transaction are the concurrency."""
    pacing.take(tx, entry.name, count)
    rate_per_s = entry.policy.rate_per_s
    if rate_per_s is None or count <= 0:
        return
    account = lock_account(tx, entry.name)
    begin = max(account["next_request_at"] or tx.now, tx.now)
    update_account(tx, entry.name, next_request_at=begin + count * _interval(rate_per_s))


def block(tx: Transaction, name: str, wait: timedelta) -> None:
    """Leaves an account alone: the provider said "later". Never shortens what it said before.

    Comes before any write to a job in the transaction (lock order).
    """
    until = tx.now + wait
    known = lock_account(tx, name)["blocked_until"]
    if known is None or known < until:
        update_account(tx, name, blocked_until=until)


def _may_ask(account: Row, now: datetime) -> bool:
    return _is_open(account, now) and not outages.is_away(account)


def _is_open(account: Row, now: datetime) -> bool:
    blocked_until = account["blocked_until"]
    return account["paused_at"] is None and (blocked_until is None or blocked_until <= now)


def _free_slots(account: Row, rate_per_s: float, *, now: datetime) -> int:
    interval = _interval(rate_per_s)
    held = max(1, _SECOND // interval)
    begin = max(account["next_request_at"] or now, now)
    return (now + held * interval - begin) // interval


def _interval(rate_per_s: float) -> timedelta:
    return max(timedelta(seconds=1 / rate_per_s), timedelta(microseconds=1))
