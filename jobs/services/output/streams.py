"""Whose output is followed while it is made, and when: what surrounds the reading itself.

A stream's row is written in the transaction that learns the run's id, whoever told it. Streaming is extra: whatever
becomes of it, polls and webhooks decide about the job as ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import structlog

from jobs.broker import READ_OUTPUT
from jobs.providers.port import StreamsOutput
from jobs.services.runtime import ProviderEntry, Runtime
from jobs.services.work import LEASE
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row, get_job
from jobs.storage.output import claim_streams, end_unwanted, has_due_streams
from jobs.storage.premise import Premise, always

#: The text of a job that has ended is read on for so long.
GRACE = timedelta(seconds=30)
#: Why a stream ended whose job nobody waits for any more.
JOB_ENDED = "job_ended"

_log = structlog.get_logger(__name__)


def streaming(entry: ProviderEntry | None) -> StreamsOutput | None:
    """An account's adapter, where its runs can be listened to."""
    adapter: object = entry.adapter if entry else None
    return adapter if isinstance(adapter, StreamsOutput) else None


def can_follow(providers: Mapping[str, ProviderEntry], job: Row) -> bool:
    """Whether a job tells its output as it is made. Never raises: it is asked where much else is written."""
    adapter = streaming(providers.get(job["provider"]))
    try:
        return adapter is not None and adapter.can_follow(_inputs(job))
    except Exception:  # noqa: BLE001 - an adapter's defect costs its stream, not the transaction it is asked in
        _log.exception("a job's stream is left alone", job=job["id"], provider=job["provider"])
        return False


def can_follow_locked(providers: Mapping[str, ProviderEntry], tx: Transaction, job: Row) -> bool:
    """The same for a job whose row came without its input: that is read only where somebody could use it."""
    return streaming(providers.get(job["provider"])) is not None and can_follow(providers, get_job(tx, job["id"]))


def ring_reader(runtime: Runtime, job: Row) -> None:
    """After the commit that made a run known: its output may be listened to. Only speed, a sweep looks too."""
    if can_follow(runtime.providers, job):
        runtime.broker.publish(READ_OUTPUT, job["id"])


def claim_due(runtime: Runtime, limit: int, *, premise: Premise = always) -> list[tuple[str, str]]:
    """Leases streams that are due and nobody reads: new ones, those whose reader died, and those that rested.

    Args:
        runtime: The process's parts.
        limit: Streams at most that wait for a reader at once, those claimed before included.
        premise: Checked in the transaction.

    Raises:
        Stale: The premise failed.
    """
    with runtime.database.read() as tx:
        if not has_due_streams(tx):
            return []
    with runtime.database.write() as tx:
        premise(tx)
        end_unwanted(tx, limit, reason=JOB_ENDED, ended_before=tx.now - GRACE)
        return claim_streams(tx, limit, lease=LEASE)


def _inputs(job: Row) -> Mapping[str, Any]:
    return job["input"] if isinstance(job["input"], Mapping) else {}
