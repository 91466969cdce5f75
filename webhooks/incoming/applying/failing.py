"""What follows when an event cannot be applied: wait and try again, or a dead letter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import structlog
from sqlalchemy.exc import DBAPIError, OperationalError

from jobs.core.backoff import retry_wait
from jobs.core.errors import Permanent, Stale
from jobs.services.runtime import Runtime
from jobs.storage.database import Transaction
from webhooks.incoming.applying.claims import Settlement, give_back, settle
from webhooks.incoming.applying.work import Work
from webhooks.incoming.letters import write_letter
from webhooks.incoming.schema import InboxStatus
from webhooks.incoming.wording import describe, traceback_of

MAX_FAILURES = 5
#: A start that never ended took its worker with it, most likely.
MAX_UNFINISHED = 3
_BASE = timedelta(seconds=5)
_CAP = timedelta(minutes=5)
_RIVAL_WAIT = timedelta(seconds=5)  # until whoever holds the job's lock is done

_log = structlog.get_logger(__name__)


def is_rival(error: Exception) -> bool:
    """Whether somebody else held a lock or had changed the job: no fault of the row."""
    return isinstance(error, OperationalError | Stale)


def leave_to_rival(tx: Transaction, work: Work, *, token: str) -> None:
    """Gives a row back until whoever holds its job is done; the start is not counted."""
    give_back(tx, [work.id], token=token, next_try_at=tx.now + _RIVAL_WAIT)


def settle_failure(runtime: Runtime, tx: Transaction, work: Work, error: Exception, *, token: str) -> None:
    """Writes what follows from a failed application.

    A rival's lock is no fault of the row and is not counted. A ``Permanent`` error buries
    it at once, any other after :data:`MAX_FAILURES`. Where the row's lease has passed on, it is another worker's to
    judge, and nothing is written: the others of its transaction are ours still.

    Raises:
        Exception: The error itself, where the connection is lost: nothing can be written.
    """
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        raise error
    try:
        _settle_failure(runtime, tx, work, error, token=token)
    except Stale:
        _log.info("event left to another worker", event_id=work.id)


def _settle_failure(runtime: Runtime, tx: Transaction, work: Work, error: Exception, *, token: str) -> None:
    about = {"event_id": work.id, "provider": work.row["provider"], "error": describe(error)}
    _log.warning("event not applied", **about, **traceback_of(error))
    if is_rival(error):
        leave_to_rival(tx, work, token=token)
    elif isinstance(error, Permanent) or work.row["failures"] + 1 >= MAX_FAILURES:
        _bury(tx, work.row, describe(error), failures=work.row["failures"] + 1, token=token)
    else:
        _try_later(runtime, tx, work, error, token=token)


def bury_unfinished(
    tx: Transaction, rows: Sequence[Mapping[str, Any]], *, token: str
) -> tuple[list[Mapping[str, Any]], int]:
    """Buries freshly claimed rows whose earlier starts never ended; returns the others, and how many were buried."""
    hopeless = [row for row in rows if row["tries"] - row["failures"] > MAX_UNFINISHED]
    for row in hopeless:
        _log.error("event buried: its starts never ended", event_id=row["id"], provider=row["provider"])
        reason = f"{MAX_UNFINISHED} starts never ended: it may be what stopped its worker"
        begun = {**row, "tries": row["tries"] - 1}  # this claim begins nothing
        _bury(tx, begun, reason, failures=row["failures"], token=token)
    return [row for row in rows if row not in hopeless], len(hopeless)


def _try_later(runtime: Runtime, tx: Transaction, work: Work, error: Exception, *, token: str) -> None:
    failures = work.row["failures"] + 1
    settlement = Settlement(
        work.id,
        InboxStatus(work.row["status"]),
        describe(error),
        job_id=work.row["job_id"],
        tenant=work.row["tenant"],
        provider_job_id=work.row["provider_job_id"],
        tries=failures,
        failures=failures,
        next_try_at=tx.now + retry_wait(failures, base=_BASE, cap=_CAP, rng=runtime.rng),
        parked_until=work.row["parked_until"],
        first_failed_at=work.row["first_failed_at"] or tx.now,
    )
    settle(tx, [settlement], token=token)


def _bury(tx: Transaction, row: Mapping[str, Any], reason: str, *, failures: int, token: str) -> None:
    settlement = Settlement(
        row["id"],
        InboxStatus.DEAD,
        reason,
        job_id=row["job_id"],
        tenant=row["tenant"],
        provider_job_id=row["provider_job_id"],
        tries=row["tries"],
        failures=failures,
        first_failed_at=row["first_failed_at"] or tx.now,
    )
    settle(tx, [settlement], token=token)
    write_letter(tx, row, reason=reason, attempts=row["tries"], first_failed_at=row["first_failed_at"])
