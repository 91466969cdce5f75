"""A provider that is away is left alone: one probe at a time, at growing waits, until it answers.

The breaker (:mod:`jobs.core.breaker`) is kept in the account's row, so all processes share it, and whoever changes it
holds that row: it opens once, however many see it, and the event of it is written in the same transaction. While it is
open no claim finds room, what was claimed before is given back, and what fails uses up no tries. Deadlines go on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

import structlog

from jobs.core import instants
from jobs.core.breaker import CLOSED, Breaker, Failure, Seen, begin_probe
from jobs.core.breaker import observe as decide
from jobs.core.errors import JobsError
from jobs.core.events import EventType
from jobs.core.text import clean
from jobs.net.http import NoAnswer, NotSent
from jobs.providers.answers import AWAY, DECLINED
from jobs.providers.port import AlreadyFinished, Gone, KeyReused, Refused
from jobs.services.accounts import pacing
from jobs.services.runtime import ProviderEntry, Runtime
from jobs.storage.accounts import find_account, lock_account, update_account
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.metadata import from_microseconds, to_microseconds
from jobs.storage.outbox import append_event
from jobs.storage.turns import due_in_turn, due_tenants

#: Longer than a job's own lease; a call is bounded far below it.
_PROBE_LEASE = timedelta(seconds=30)
#: What a probe is made of, the cheapest first: a read asks nothing of a provider that is barely back.
_PROBES = ("poll", "cancel", "submit")
_MAX_REASON_CHARS = 300
#: As :func:`jobs.providers.answers.describe` begins, and as the HTTP library names an address.
_ANSWERED, _IN_URL = re.compile(r"[a-z ]{1,40}: HTTP [0-9]{3}"), re.compile(r" with url: \S+")
#: Errors that only a provider which is there can cause.
_ANSWERS = (Gone, AlreadyFinished, Refused, KeyReused)
_log = structlog.get_logger(__name__)


def seen_of(answer: object) -> Seen:
    """What a call's answer, or the error it raised, says of the provider's health.

    "Later" is an answer (the account is left alone anyway), and so is a 4xx. An error outside the tree is ours.
    """
    if not isinstance(answer, Exception) or isinstance(answer, _ANSWERS):
        return Seen.ANSWERED
    if not isinstance(answer, JobsError):
        return Seen.UNCLEAR
    if answer.retry_after is not None or answer.slug == DECLINED:
        return Seen.ANSWERED
    return Seen.AWAY if answer.slug == AWAY or isinstance(answer, NotSent) else Seen.FAILED


def reason_of(answer: object) -> str:
    """What a call came to, in words that tell nothing of what it was about.

    Whoever may use the account reads them, and the call was somebody's: a body may quote its input, a URL its run.
    """
    words = clean(str(answer))
    if isinstance(answer, NotSent | NoAnswer):
        return _IN_URL.sub("", words)[:_MAX_REASON_CHARS]
    known = _ANSWERED.match(words)
    return known[0] if known else "no usable answer"


def observe(
    tx: Transaction, runtime: Runtime, entry: ProviderEntry, *, ref: str, answer: object
) -> tuple[bool, list[str]]:
    """Keeps what a call came to. First in its transaction: an account is locked before jobs.

    Args:
        tx: The open transaction.
        runtime: The process's parts.
        entry: Whom the call went to.
        ref: What it was about: a job, or an extra run.
        answer: What came, or what was raised.

    Returns:
        Whether the call failed of an outage, so that nobody's tries are used up; and events written.
    """
    seen = seen_of(answer)
    if seen is Seen.ANSWERED and breaker_of(find_account(tx, entry.name)) == CLOSED:
        return False, []  # every call but a few: nothing is written and nothing locked
    before = breaker_of(lock_account(tx, entry.name))
    after = decide(before, seen, ref=ref, now=tx.now, rng=runtime.rng)
    event_ids = []
    if after != before:
        reason = reason_of(answer) if after.opened_at and not before.opened_at else None
        _write(tx, entry.name, after, **({"outage_reason": reason} if reason or not after.opened_at else {}))
        event_ids = _tell(tx, entry, before, after, reason=reason)
    return after.opened_at is not None and seen is not Seen.ANSWERED, event_ids


def is_away(account: Row) -> bool:
    """Whether its breaker is open, or half open."""
    return account["outage_at"] is not None


def lets_through(account: Row, ref: str | None, tx: Transaction) -> bool:
    """Whether a call about this may leave: anything while the provider is there, else the probe alone."""
    return not is_away(account) or (ref is not None and breaker_of(account).lets_through(ref, now=tx.now))


def claim_probe(tx: Transaction, name: str, kind: str, tenants: Sequence[str]) -> list[str]:
    """The job whose due work of this kind shall try whether the provider is back; none where none shall.

    Whoever asks leases it in the same transaction. ``tenants`` have such work.
    """
    if not is_away(find_account(tx, name)) or not _may_probe(lock_account(tx, name), tx):
        return []
    if any(due_tenants(tx, cheaper, [name]) for cheaper in _PROBES[: _PROBES.index(kind)]):
        return []
    found = [row["id"] for row in due_in_turn(tx, kind, name, tenants=tenants, limit=1)]
    return [job_id for job_id in found if take_probe(tx, name, job_id)]


def take_probe(tx: Transaction, name: str, ref: str) -> bool:
    """Makes a call about this the probe, if one is due; of several who ask, one may."""
    account = lock_account(tx, name)
    if not is_away(account) or not _may_probe(account, tx):
        return False
    _write(tx, name, begin_probe(breaker_of(account), ref, now=tx.now, lease=_PROBE_LEASE))
    return True


def has_due_work(tx: Transaction, name: str) -> bool:
    """Whether any job of the provider waits for a call, which is a better probe than one about an extra run."""
    return any(due_tenants(tx, kind, [name]) for kind in _PROBES)


def _may_probe(account: Row, tx: Transaction) -> bool:
    blocked_until = account["blocked_until"]
    is_open = account["paused_at"] is None and (blocked_until is None or blocked_until <= tx.now)
    return is_open and breaker_of(account).is_probe_due(tx.now)


def breaker_of(account: Row) -> Breaker:
    """The state as a value."""
    return Breaker(
        failures=tuple(Failure(ref, from_microseconds(at), away) for ref, at, away in account["failures"] or ()),
        opened_at=account["outage_at"],
        probes=account["probes"],
        next_probe_at=account["next_probe_at"],
        probe=account["probe_ref"],
        probe_until=account["probe_until"],
    )


def _write(tx: Transaction, name: str, breaker: Breaker, **more: str | None) -> None:
    update_account(
        tx,
        name,
        failures=_plain(breaker.failures) or None,
        outage_at=breaker.opened_at,
        probes=breaker.probes,
        next_probe_at=breaker.next_probe_at,
        probe_ref=breaker.probe,
        probe_until=breaker.probe_until,
        **more,
    )


def _plain(failures: Sequence[Failure]) -> list[tuple[str, int, bool]]:
    return [(failure.ref, to_microseconds(failure.at), failure.away) for failure in failures]


def _tell(tx: Transaction, entry: ProviderEntry, before: Breaker, after: Breaker, *, reason: str | None) -> list[str]:
    """One event when it opens and one when it closes; what piled up meanwhile gets its pace."""
    if before.opened_at is None and after.opened_at is not None:
        _log.error("provider away", provider=entry.name, reason=reason)
        began = {"provider": entry.name, "since": instants.to_text(after.failures[0].at), "reason": reason}
        return [append_event(tx, EventType.PROVIDER_OUTAGE_BEGAN, tenant=entry.config.tenant, data=began)]
    if before.opened_at is None or after.opened_at is not None:
        return []
    pacing.begin(tx, entry.name)
    lasted_s = round((tx.now - before.opened_at).total_seconds(), 3)
    _log.warning("provider back", provider=entry.name, lasted_s=lasted_s, probes=before.probes)
    ended = {
        "provider": entry.name,
        "since": instants.to_text(before.failures[0].at if before.failures else before.opened_at),
        "lasted_s": lasted_s,
        "probes": before.probes,
    }
    return [append_event(tx, EventType.PROVIDER_OUTAGE_ENDED, tenant=entry.config.tenant, data=ended)]
