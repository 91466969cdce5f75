"""The relay: gives committed events their position and hands them to the subscribers that want them.

A bell says that there is something to relay; a sweep looks as well, for bells that got lost. Two relays at once are
harmless: the position's counter is locked from before the first row is read until the commit.

A row may take the worker along that relays it (a body too large for its memory). A bell pays nothing for that chance:
what it leaves behind is counted by whoever comes after it, the repeated bell or the sweep, before it begins. From then
on such a row is a suspect: it goes alone, with growing waits, and after :data:`MAX_STARTS` it is a dead letter.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

import structlog

from jobs.services.relay_batches import Batch, Relayed, park_event, ring
from jobs.services.runtime import Runtime
from jobs.storage.counters import lock_counter, set_counter
from jobs.storage.database import Transaction
from jobs.storage.premise import Premise, always
from jobs.storage.relay import (
    POSITION,
    count_batch,
    count_start,
    find_suspect,
    has_suspects,
    has_unrelayed,
    list_unrelayed,
)
from jobs.telemetry import span

BATCH = 200  # SQLite's one writer is held no longer than about 10 ms
MAX_STARTS = 3
# After the first, second … start of a suspect that nobody has heard the end of.
_SUSPECT_WAITS = (timedelta(seconds=10), timedelta(seconds=30), timedelta(seconds=60))
_log = structlog.get_logger(__name__)


def relay(runtime: Runtime, *, premise: Premise = always, after_loss: bool = False) -> Relayed:
    """Relays until nothing is left that can be.

    Args:
        runtime: The process's parts.
        premise: Checked in each transaction.
        after_loss: Whether the last worker that had this message died of something: of what it found first, perhaps.

    Raises:
        Stale: The premise failed.
        Unavailable: The database is away; nothing of the batch under way was kept.
    """
    if after_loss:
        _suspect(runtime, premise)
    total = Relayed(more=True)
    while total.more:
        total.add(relay_batch(runtime, without=total.failed, premise=premise))
    total.add(relay_suspects(runtime, premise=premise))
    return total


def relay_counted(runtime: Runtime, *, limit: int = BATCH, premise: Premise = always) -> Relayed:
    """Relays one batch whose starts are counted first, then the suspects: for a sweep, which finds what bells left.

    Raises:
        Stale: The premise failed.
        Unavailable: The database is away; nothing of the row or batch under way was kept.
    """
    with runtime.database.read() as tx:
        if not has_unrelayed(tx):
            return Relayed()
    with runtime.database.write() as tx:
        premise(tx)
        counted = _count_batch(tx, limit, wait=_SUSPECT_WAITS[0])
    total = _relay_batch(runtime, limit=limit, among=counted, premise=premise) if counted else Relayed()
    total.add(relay_suspects(runtime, limit=limit, premise=premise))
    total.more = len(counted) == limit
    return total


def relay_suspects(runtime: Runtime, *, limit: int = BATCH, premise: Premise = always) -> Relayed:
    """Relays rows of which a relay may have died, each alone; buries those that had their starts.

    Raises:
        Stale: The premise failed.
        Unavailable: The database is away.
    """
    total = Relayed()
    for _ in range(limit):
        with runtime.database.read() as tx:
            if not has_suspects(tx):
                break
        with runtime.database.write() as tx:
            premise(tx)
            begun = _begin_suspect(tx)
        if isinstance(begun, Relayed):
            total.add(begun)
        elif begun is None:
            break
        else:
            total.add(_relay_batch(runtime, limit=1, among=[begun], premise=premise))
    return total


def _suspect(runtime: Runtime, premise: Premise) -> None:
    with runtime.database.write() as tx:
        premise(tx)
        found = _count_batch(tx, BATCH, wait=timedelta(0))
    _log.warning("a relay was lost; what it may have begun goes one by one", events=len(found))


def _count_batch(tx: Transaction, limit: int, *, wait: timedelta) -> list[int]:
    """Not beside a relay that marks the same rows: both lock many, each in an order of its own."""
    lock_counter(tx, POSITION)
    return count_batch(tx, limit, until=tx.now + wait)


def _begin_suspect(tx: Transaction) -> int | Relayed | None:
    """Counts a start of the next suspect and returns its number; buries one that had them all."""
    row = find_suspect(tx)
    if row is None:
        return None
    if row["relay_starts"] < MAX_STARTS:
        wait = _SUSPECT_WAITS[min(row["relay_starts"], len(_SUSPECT_WAITS) - 1)]
        count_start(tx, row["row_id"], until=tx.now + wait)
        return int(row["row_id"])
    reason = f"{MAX_STARTS} starts of relaying it never ended: it may be what stopped its worker"
    _log.error("event parked: its starts never ended", event_id=row["id"])
    park_event(tx, row, reason, evidence={"type": row["type"]}, attempts=row["relay_starts"])
    return Relayed(parked=1, failed={row["row_id"]})


def relay_batch(
    runtime: Runtime, *, limit: int = BATCH, without: Collection[int] = (), premise: Premise = always
) -> Relayed:
    """Relays one batch in one transaction, then rings the handlers' bells.

    Args:
        runtime: The process's parts.
        limit: Events at most.
        without: Row numbers that failed a moment ago.
        premise: Checked in the transaction.

    Raises:
        Stale: The premise failed.
        Unavailable: The database is away; nothing was kept.
    """
    with runtime.database.read() as tx:
        if not has_unrelayed(tx):
            return Relayed()
    return _relay_batch(runtime, limit=limit, without=without, premise=premise)


def _relay_batch(
    runtime: Runtime,
    *,
    limit: int,
    premise: Premise,
    without: Collection[int] = (),
    among: Collection[int] | None = None,
) -> Relayed:
    with span("relay_batch", clock=runtime.clock), runtime.database.write() as tx:
        premise(tx)
        batch = Batch(tx, runtime.handlers, runtime.fan_outs, position=lock_counter(tx, POSITION))
        rows = list_unrelayed(tx, limit, without=without, among=among)
        batch.relay(rows)
        set_counter(tx, POSITION, batch.position)
    batch.outcome.rung = ring(runtime, batch.claims)
    for message in sorted(batch.messages):
        runtime.broker.publish(*message)
    batch.outcome.more = len(rows) == limit
    return batch.outcome
