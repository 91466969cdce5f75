"""What the ends of jobs teach: how long each kind takes, and whether a provider's webhooks arrive.

A sweep reads the history from where it left off and writes a few rows; nothing of it happens where a job ends. It is
statistics: an end that is committed too late to be seen changes nothing that matters.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import structlog

from jobs.core.events import EventType
from jobs.core.forecast import MAX_SAMPLES
from jobs.core.observations import Source
from jobs.core.standing import RECENT, is_degraded, poll_share
from jobs.core.states import JobState, is_terminal
from jobs.services.runtime import ProviderEntry, Runtime
from jobs.services.work import ring_relay
from jobs.storage.counters import lock_counter, read_counter, set_counter
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.learned import (
    FORGET_DAYS,
    find_samples,
    find_standing,
    forget_samples,
    list_steps_after,
    put_samples,
    put_standing,
)
from jobs.storage.outbox import append_event
from jobs.storage.premise import Premise, always

_CURSOR = "learned_transition"
# Ids are given before the commit: a row with a smaller one may still be on its way.
_SETTLED_AFTER = timedelta(seconds=5)
_TOLD = frozenset({Source.WEBHOOK, Source.POLL})
_LASTED = frozenset({JobState.SUCCEEDED, JobState.FAILED})
_log = structlog.get_logger(__name__)


class _End(NamedTuple):
    """A job's end.

    Attributes:
        unnoticed_s: How long it may have gone unnoticed.
        sample_s: How long the job took, as far as it can be told.
    """

    provider: str
    model: str
    source: str
    state: str
    unnoticed_s: float
    sample_s: float | None


def learn(runtime: Runtime, limit: int, *, premise: Premise = always) -> int:
    """Learns from the next rows of the history.

    Args:
        runtime: The process's parts.
        limit: Rows at most.
        premise: Checked in the transaction.

    Returns:
        How many rows were read.

    Raises:
        Stale: The premise failed.
    """
    with runtime.database.read() as tx:
        after = read_counter(tx, _CURSOR)
        rows = list_steps_after(tx, after, until=tx.now - _SETTLED_AFTER, limit=limit)
    if not rows:
        return 0
    ends = [_end_of(row) for row in rows if _is_end(row)]
    with runtime.database.write() as tx:
        premise(tx)
        if lock_counter(tx, _CURSOR) != after:
            return 0  # somebody else has learned from them
        _learn_durations(tx, ends)
        event_ids = _learn_standings(tx, runtime, ends)
        set_counter(tx, _CURSOR, rows[-1]["id"])
    ring_relay(runtime, event_ids)
    return len(rows)


def _is_end(row: Row) -> bool:
    return row["applied"] and is_terminal(JobState(row["to_state"])) and row["source"] in _TOLD


def _end_of(row: Row) -> _End:
    at: datetime = min(row["at"], row["told_at"])
    began_at = row["submitted_at"]
    noticed_s = max((at - began_at).total_seconds(), 0.0) if began_at else 0.0
    unnoticed_s = 0.0
    if row["source"] == Source.POLL and began_at:
        unnoticed_s = max((at - (row["polled_at"] or began_at)).total_seconds(), 0.0)
    tells = began_at and row["adopt"] is None and row["to_state"] in _LASTED
    sample_s = noticed_s - unnoticed_s * _place(row["job_id"]) if tells else None
    return _End(row["provider"], row["model"] or "", row["source"], row["to_state"], unnoticed_s, sample_s)


def _place(job_id: str) -> float:
    """Where in the unnoticed time a job ended, from 0 to 1: nobody knows, so all jobs together are spread over it.

    Taking the poll for the end instead would place the next polls later, and those after them later still.
    """
    return zlib.crc32(job_id.encode()) / 2**32


def _learn_durations(tx: Transaction, ends: Sequence[_End]) -> None:
    fresh: dict[tuple[str, str], list[float]] = defaultdict(list)
    for end in ends:
        if end.sample_s is not None:
            fresh[end.provider, end.model].append(end.sample_s)
    for (provider, model), samples_s in sorted(fresh.items()):
        known = find_samples(tx, provider, model)
        put_samples(tx, provider, model, [round(sample_s, 3) for sample_s in (*known, *samples_s)][-MAX_SAMPLES:])
    if fresh:
        forget_samples(tx, tx.now - timedelta(days=FORGET_DAYS))


def _learn_standings(tx: Transaction, runtime: Runtime, ends: Sequence[_End]) -> list[str]:
    fresh: dict[str, list[list[Any]]] = defaultdict(list)
    for end in ends:
        fresh[end.provider].append([end.source, end.state, round(end.unnoticed_s, 3)])
    event_ids = []
    for provider, recent in sorted(fresh.items()):
        entry = runtime.providers.get(provider)
        if entry is not None:
            event_ids += _learn_standing(tx, entry, recent)
    return event_ids


def _learn_standing(tx: Transaction, entry: ProviderEntry, fresh: Sequence[list[Any]]) -> list[str]:
    known: Mapping[str, Any] = find_standing(tx, entry.name) or {"recent": [], "degraded_at": None}
    recent = [*known["recent"], *fresh][-RECENT:]
    before = known["degraded_at"]
    degraded = entry.calls_back and is_degraded(recent, was=before is not None)
    put_standing(tx, entry.name, recent=recent, degraded_at=(before or tx.now) if degraded else None)
    if degraded == (before is not None):
        return []
    _log.warning("webhooks degraded" if degraded else "webhooks recovered", provider=entry.name)
    event = EventType.PROVIDER_WEBHOOKS_DEGRADED if degraded else EventType.PROVIDER_WEBHOOKS_RECOVERED
    data = {"provider": entry.name, "poll_share": poll_share(recent), "jobs": len(recent)}
    return [append_event(tx, event, tenant=entry.config.tenant, data=data, provider=entry.name)]
