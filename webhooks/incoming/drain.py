"""The drain: applies what the receiver stored, in batches, until nothing is due.

A claim is committed before the work begins, and counted: a row that kills its worker three times becomes a dead
letter.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobs.broker import DRAIN
from jobs.ids import new_token
from jobs.services.runtime import Runtime
from webhooks.incoming.batch import Counts, apply_claimed
from webhooks.incoming.bell import RingFlag
from webhooks.incoming.claims import claim_due, claim_rows
from webhooks.incoming.failing import bury_unfinished

#: Keeps SQLite's one writer, and the locks of a batch's jobs, for a few milliseconds at most.
BATCH = 200
_MAX_BATCHES = 100


def drain(runtime: Runtime, *, limit: int = BATCH) -> Counts:
    """Applies everything that is due.

    The flag goes down first: whatever is committed after that rings anew, whatever was before is found here.

    Raises:
        Unavailable: The database is away; what was claimed is due again later.
    """
    RingFlag(runtime.redis).take_down()
    total = Counts()
    for _ in range(_MAX_BATCHES):
        counts = sweep_batch(runtime, limit=limit)
        total += counts
        if not counts.claimed:
            return total
    runtime.broker.publish(DRAIN)  # others use this worker too; the rest waits behind them
    return total


def sweep_inbox(runtime: Runtime) -> int:
    """One bounded batch, for the reconciler; returns how many rows it took on, 0 when none is due.

    Raises:
        Unavailable: The database is away.
    """
    return sweep_batch(runtime, limit=BATCH).claimed


def sweep_batch(runtime: Runtime, *, limit: int) -> Counts:
    """Claims and applies one batch; where nothing new is due, one row whose last start never ended.

    Raises:
        Unavailable: The database is away.
    """
    token = new_token()
    with runtime.database.write() as tx:
        rows, buried = bury_unfinished(tx, claim_due(tx, token=token, limit=limit), token=token)
    counts = apply_claimed(runtime, rows, token=token)
    return counts + Counts(claimed=buried, failed=buried)


def drain_rows(runtime: Runtime, event_ids: Sequence[str]) -> Counts:
    """Applies certain rows now, due or not, unless somebody else is at them.

    Raises:
        Unavailable: The database is away.
    """
    token = new_token()
    with runtime.database.write() as tx:
        rows, _ = bury_unfinished(tx, claim_rows(tx, event_ids, token=token), token=token)
    return apply_claimed(runtime, rows, token=token)
