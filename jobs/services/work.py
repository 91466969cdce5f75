"""Work on a job at its provider: one lease, whatever the kind (submit, poll, cancel).

``begin_work`` is the first half of every such task, in its own short transaction: take the lease, see that the work is
still due, count. Then comes the network, outside any transaction. ``end_work`` belongs into the transaction that
writes what was learned. A start that never comes to its end (the process died, an adapter raised what it must not)
stays counted, and the next one waits longer; after :data:`MAX_STARTS` in a row the work becomes a dead letter, so that
no job can kill workers for ever. (Cancels are counted apart: polls go on beside them, and each that ends well would
wipe out their starts.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
import structlog

from jobs.broker import RELAY
from jobs.core.backoff import Rng, retry_wait
from jobs.core.breaker import Seen
from jobs.core.errors import JobsError
from jobs.ids import new_token
from jobs.services.accounts import budgets
from jobs.services.accounts.outages import seen_of
from jobs.services.lease_keeper import LeaseKeeper
from jobs.services.runtime import ProviderEntry, Runtime
from jobs.storage.accounts import was_heard
from jobs.storage.database import Transaction
from jobs.storage.dead_letters import dead_letter
from jobs.storage.jobs import (
    DUE_COLUMNS,
    Row,
    find_job,
    get_job,
    lease_jobs,
    release_lease,
    swap_lease,
    update_bookkeeping,
)
from jobs.storage.metadata import Instant
from jobs.storage.schema import jobs

# Longer than one request may take with what surrounds it; short enough that what a dead worker held is done within
# 30 s, by a worker that has to be started first. A submit, whose answer must be written, renews it (:func:`keep`).
LEASE = timedelta(seconds=20)
_RENEW_EVERY_S = 6.0
#: For all requests of a read or a cancel together: some providers are asked twice. The rest is for writing it down.
ASK_WITHIN_S = 15.0
MAX_STARTS = 3
# After so many failed tries at a provider a person is asked …
MAX_TRIES = 8
# … or after so many, more than an hour, where nobody has had an answer meanwhile: it may be the provider's trouble.
MAX_UNANSWERED = 20
_RETRY_BASE, _RETRY_CAP = timedelta(seconds=2), timedelta(minutes=10)
# An adapter that raises what it must not has few tries; whatever it stumbled over may be gone by the next.
_BROKEN_BASE = timedelta(seconds=10)

_COUNTERS: Mapping[str, str] = {"submit": "submit_tries", "poll": "poll_count", "cancel": "cancel_tries"}
# What is counted before each start.
_STARTS: Mapping[str, str] = {"submit": "starts", "poll": "starts", "cancel": "cancel_starts"}

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Work:
    """Work that is ours.

    Attributes:
        job: The row as it was when the work began, counted.
        token: The lease; every write about due times repeats it.
        due_at: The due time being worked off. Where it has changed by the end, somebody wants the work again.
    """

    kind: str
    job: Row
    entry: ProviderEntry
    token: str
    due_at: datetime

    def address(self, run: str) -> str:
        """What a run is read and canceled by."""
        return self.entry.adapter.capabilities.address(run, self.job["input"])

    @property
    def job_id(self) -> str:
        """The job."""
        return str(self.job["id"])

    @property
    def attempt(self) -> int:
        """The attempt it was begun for."""
        return int(self.job["attempt"])

    @property
    def tries(self) -> int:
        """How often this work was begun, this time included."""
        return int(self.job[_COUNTERS[self.kind]])


def begin_work(tx: Transaction, runtime: Runtime, kind: str, *, job_id: str, lease_token: str | None) -> Work | None:
    """Takes the work on, or finds that there is none for us.

    Args:
        tx: The open transaction.
        runtime: The process's parts.
        kind: ``submit``, ``poll`` or ``cancel``.
        job_id: The job.
        lease_token: What the sweep that claimed the job gave the message; without one the lease must be free.
    """
    row = find_job(tx, job_id)
    entry = runtime.providers.get(row["provider"]) if row else None
    if entry is None:
        _log.warning("no_such_work", kind=kind, job=job_id, provider=row and row["provider"])
        return None
    token = _take_lease(tx, entry, job_id=job_id, held=lease_token)
    if token is None:
        return None
    row = get_job(tx, job_id)  # now that nobody else can change its due times
    due_at = row[DUE_COLUMNS[kind]]
    work = Work(kind, row, entry, token, due_at)
    if due_at is None or due_at > tx.now or not budgets.is_open(tx, entry.name, ref=job_id):
        release_lease(tx, job_id, held=token)
        return None
    starts = _STARTS[kind]
    if row[starts] >= MAX_STARTS:
        words = f"the {kind} was begun {row[starts]} times and never came to its end"
        bury(tx, work, words, attempts=row[starts])
        end_work(tx, work, due_at=None)
        return None
    counted = {column: row[column] + 1 for column in (starts, _COUNTERS[kind])}
    until = tx.now + lease_after(row[starts])
    update_bookkeeping(tx, job_id, {**counted, "lease_until": until}, jobs.c.lease_token == token)
    return Work(kind, {**row, **counted}, entry, token, due_at)


def lease_after(unfinished: int) -> timedelta:
    """The lease of a start after so many that never ended; where they killed their workers, the waits grow."""
    return LEASE * (1 << unfinished)


def keep(runtime: Runtime, work: Work) -> LeaseKeeper:
    """Keeps the work's lease for as long as the block lasts: only a dead worker's ends."""
    length = lease_after(work.job[_STARTS[work.kind]] - 1)

    def renew() -> bool:
        with runtime.database.write() as tx:
            held = jobs.c.lease_token == work.token
            return update_bookkeeping(tx, work.job_id, {"lease_until": tx.now + length}, held)

    return LeaseKeeper(renew, every_s=_RENEW_EVERY_S)


def _take_lease(tx: Transaction, entry: ProviderEntry, *, job_id: str, held: str | None) -> str | None:
    token, until = new_token(), tx.now + LEASE
    if held is not None:
        return token if swap_lease(tx, job_id, held=held, fresh=token, until=until) else None
    if budgets.find_room(tx, entry, limit=1) < 1 or not lease_jobs(tx, [job_id], token=token, until=until):
        return None
    budgets.take(tx, entry, 1)
    return token


def end_work(tx: Transaction, work: Work, *, due_at: datetime | None, **changes: Any) -> bool:
    """Gives the lease back in good order, with the next due time.

    The due time is written only where it is still the one that was worked off: an observation of this transaction
    may have cleared it, and a hint that came meanwhile wants another look.

    Returns:
        False where the lease had been lost; then nothing was written.
    """
    return _release(tx, work, due_at=due_at, changes={_STARTS[work.kind]: 0, **changes})


def break_off(tx: Transaction, work: Work, *, due_at: datetime) -> bool:
    """Gives the lease back after something that must not happen; the start stays counted, so waits are not short."""
    patience = _BROKEN_BASE * (1 << max(work.job[_STARTS[work.kind]] - 1, 0))
    return _release(tx, work, due_at=max(due_at, tx.now + patience), changes={})


def _release(tx: Transaction, work: Work, *, due_at: datetime | None, changes: Mapping[str, Any]) -> bool:
    column = jobs.c[DUE_COLUMNS[work.kind]]
    kept = sa.case((column == work.due_at, sa.literal(due_at, Instant())), else_=column)
    return release_lease(tx, work.job_id, held=work.token, changes={**changes, column.name: kept})


def bury(tx: Transaction, work: Work, reason: str, *, attempts: int) -> None:
    """Writes the work's dead letter."""
    evidence = {"provider": work.entry.name, "attempt": work.attempt, "run": work.job["provider_job_id"]}
    dead_letter(
        tx,
        work.kind,
        work.job_id,
        reason=reason,
        attempts=attempts,
        tenant=work.job["tenant"],
        job_id=work.job_id,
        evidence=evidence,
    )


def wait_after(error: JobsError | None, tries: int, *, rng: Rng, base: timedelta = _RETRY_BASE) -> timedelta:
    """How long to wait after a failed try: growing and jittered, and never sooner than the provider asked."""
    wait = retry_wait(tries, base=base, cap=_RETRY_CAP, rng=rng)
    asked = error.retry_after if error is not None else None
    return wait if asked is None else max(wait, asked)


def gives_up(tx: Transaction, entry: ProviderEntry, answer: object, *, tries: int) -> bool:
    """Whether a call has failed often enough for a person to be asked.

    A breaker needs several jobs to tell an outage from one job's trouble; a lone job cannot open it, and must outlive
    an hour of 500s all the same. Whether anybody was answered since its first try tells the two apart.
    """
    if tries < MAX_TRIES or tries >= MAX_UNANSWERED:
        return tries >= MAX_UNANSWERED
    doubled = (min(_RETRY_BASE * (1 << number), _RETRY_CAP) for number in range(tries - 1))
    since_first = sum(doubled, timedelta(0)) / 2  # at least: jitter takes no more than half of a wait
    return seen_of(answer) is not Seen.FAILED or was_heard(tx, entry.name, since=tx.now - since_first)


def obey(tx: Transaction, work: Work, error: JobsError | None) -> None:
    """Leaves the whole account alone where the provider said "later". First in its transaction (lock order)."""
    if error is not None and error.retry_after is not None:
        budgets.block(tx, work.entry.name, error.retry_after)


def ring_relay(runtime: Runtime, has_events: object) -> None:
    """After the commit: there is something to relay. Only speed, a sweep looks too."""
    if has_events:
        runtime.broker.publish(RELAY)
