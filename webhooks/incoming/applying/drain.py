"""The drain: applies what the receiver stored, in batches, until nothing is due.

A claim is committed before the work begins, and counted: a row that kills its worker three times becomes a dead
letter.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence

from jobs.broker import DRAIN, RELAY
from jobs.ids import new_token
from jobs.services.runtime import Runtime
from webhooks.incoming.applying.batch import Counts, apply_claimed
from webhooks.incoming.applying.claims import claim_due, claim_rows, has_due
from webhooks.incoming.applying.failing import bury_unfinished
from webhooks.incoming.bell import RingFlag

#: Keeps SQLite's one writer, and the locks of a batch's jobs, for some 30 ms at most.
BATCH = 200
_MAX_BATCHES = 100
#: In a long drain the relay follows at this distance: a message for each batch cost as much as its events.
_RELAY_EVERY_S = 0.1
_LONGEST_PAUSE_S = 0.05
_NEVER = threading.Event()


def drain(runtime: Runtime, *, limit: int = BATCH, pause: Callable[[float], object] = _NEVER.wait) -> Counts:
    """Applies everything that is due.

    The flag goes down first: whatever is committed after that rings anew, whatever was before is found here. After a
    batch that was not full the receivers have as long as it took: they wait for the same writer on SQLite, and for the
    same processors everywhere, and what they store meanwhile makes one larger batch instead of several small ones.

    Args:
        runtime: The process's parts.
        limit: Rows of a batch.
        pause: Waits for so many seconds.

    Raises:
        Unavailable: The database is away; what was claimed is due again later.
    """
    RingFlag(runtime.redis).take_down()
    total, unheard, rung_s = Counts(), Counts(), -math.inf
    for _ in range(_MAX_BATCHES):
        began_s = runtime.clock.monotonic()
        counts = sweep_batch(runtime, limit=limit)
        total, unheard, ended_s = total + counts, unheard + counts, runtime.clock.monotonic()
        if ended_s - rung_s >= _RELAY_EVERY_S:
            ring_relay(runtime, unheard)
            unheard, rung_s = Counts(), ended_s
        if 0 < counts.claimed < limit:
            pause(min(ended_s - began_s, _LONGEST_PAUSE_S))
        if not counts.claimed or (counts.claimed < limit and not _is_any_due(runtime)):
            break
    else:
        runtime.broker.publish(DRAIN)  # others use this worker too; the rest waits behind them
    ring_relay(runtime, unheard)
    return total


def ring_relay(runtime: Runtime, counts: Counts) -> None:
    """Rings for events that were written, if there are any."""
    if counts.has_events:
        runtime.broker.publish(RELAY)


def _is_any_due(runtime: Runtime) -> bool:
    """A look that waits for no writer: in a trickle of events every other batch would find nothing."""
    with runtime.database.read() as tx:
        return has_due(tx)


def sweep_inbox(runtime: Runtime) -> int:
    """One bounded batch, for the reconciler; returns how many rows it took on, 0 when none is due.

    Raises:
        Unavailable: The database is away.
    """
    counts = sweep_batch(runtime, limit=BATCH)
    ring_relay(runtime, counts)
    return counts.claimed


def sweep_batch(runtime: Runtime, *, limit: int) -> Counts:
    """Claims and applies one batch; where nothing new is due, one row whose last start never ended.

    Raises:
        Unavailable: The database is away.
    """
    token = new_token()
    with runtime.database.write() as tx:
        rows, buried = bury_unfinished(tx, claim_due(tx, token=token, limit=limit), token=token)
    counts = apply_claimed(runtime, rows, token=token)
    return counts + Counts(claimed=buried, failed=buried, has_events=buried > 0)


def drain_rows(runtime: Runtime, event_ids: Sequence[str]) -> Counts:
    """Applies certain rows now, due or not, unless somebody else is at them.

    Raises:
        Unavailable: The database is away.
    """
    token = new_token()
    with runtime.database.write() as tx:
        rows, _ = bury_unfinished(tx, claim_rows(tx, event_ids, token=token), token=token)
    counts = apply_claimed(runtime, rows, token=token)
    ring_relay(runtime, counts)
    return counts
