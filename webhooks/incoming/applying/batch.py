"""Claimed rows on their way into their jobs.

One transaction for all; where it fails, row by row under savepoints, so that one bad row holds up no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
import structlog

from jobs import telemetry
from jobs.core.errors import Unavailable
from jobs.services.runtime import Runtime
from jobs.storage.database import Transaction
from webhooks.incoming.applying.claims import give_back, load_raw, wake_rows
from webhooks.incoming.applying.failing import is_rival, leave_to_rival, settle_failure
from webhooks.incoming.applying.outcomes import Applied, apply
from webhooks.incoming.applying.owners import Claim, find_owners
from webhooks.incoming.applying.work import Work, read_work
from webhooks.incoming.wording import describe

_MAX_BATCH_BYTES = 16 * 2**20
# Somebody who holds one job's lock must not hold up the batch it is in: PostgreSQL only.
_BATCH_LOCK_WAIT = timedelta(seconds=2)
_ROW_LOCK_WAIT = timedelta(milliseconds=500)
_AFTER_OUTAGE = timedelta(seconds=1)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of some rows.

    Attributes:
        claimed: Rows taken on.
        settled: Rows applied, parked, ignored …
        failed: Rows that will be tried again, or became dead letters.
        has_events: Whether the outbox may have something new: the relay is to be rung.
    """

    claimed: int = 0
    settled: int = 0
    failed: int = 0
    has_events: bool = False

    def __add__(self, later: Counts) -> Counts:
        """The sum."""
        return Counts(
            self.claimed + later.claimed,
            self.settled + later.settled,
            self.failed + later.failed,
            self.has_events or later.has_events,
        )


def apply_claimed(runtime: Runtime, rows: Sequence[Mapping[str, Any]], *, token: str) -> Counts:
    """Applies claimed rows, then looks once more for the jobs of those it parked."""
    total = Counts()
    for part in _parts(rows):
        batch = _Batch(runtime, token)
        batch.run(part)
        has_events = batch.applied.has_events or batch.failed > 0
        total += Counts(len(part), batch.applied.count, batch.failed, has_events)
        _wake_found(runtime, batch.applied)
        for lag_s in batch.applied.lags_s:
            telemetry.EVENT_APPLY_LAG_S.observe(lag_s)
    if total.claimed:
        _log.info("inbox drained", claimed=total.claimed, settled=total.settled, failed=total.failed)
    return total


def _parts(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Cuts a batch where its bodies would fill the memory."""
    part: list[Mapping[str, Any]] = []
    size_bytes = 0
    for row in rows:
        if part and size_bytes + row["size_bytes"] > _MAX_BATCH_BYTES:
            yield part
            part, size_bytes = [], 0
        part.append(row)
        size_bytes += row["size_bytes"]
    if part:
        yield part


def _wake_found(runtime: Runtime, applied: Applied) -> None:
    """The submitter may have learned a run's id while its event was being parked: it saw no parked row, and we saw
    no run. After our commit one of the two sees the other."""
    if not applied.parked:
        return
    with runtime.database.read() as tx:
        owners = find_owners(tx, list(applied.parked.values()))
    found = [event_id for event_id, claim in applied.parked.items() if claim in owners]
    if found:
        with runtime.database.write() as tx:
            wake_rows(tx, found)


class _Batch:
    """Rows claimed under one token: all at once, or one by one where that fails."""

    def __init__(self, runtime: Runtime, token: str) -> None:
        self._runtime = runtime
        self._token = token
        self.applied = Applied()
        self.failed = 0

    def run(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Applies the rows.

        Raises:
            Unavailable: The database is away.
        """
        try:
            works = self._read(rows)
            if not self._run_together(works):
                self._run_alone(works)
        except Unavailable:
            self._give_back([row["id"] for row in rows])
            raise

    def _read(self, rows: Sequence[Mapping[str, Any]]) -> list[Work]:
        with self._runtime.database.read() as tx:
            raw = load_raw(tx, [row["id"] for row in rows])
        works = (self._work(row, raw[row["id"]]) for row in rows if row["id"] in raw)
        return [work for work in works if work is not None]

    def _work(self, row: Mapping[str, Any], raw: bytes) -> Work | None:
        """A row, read; None where it cannot be, and what follows from that is written."""
        try:
            return read_work(self._runtime, row, raw)
        except Exception as error:  # noqa: BLE001 - settled by the kind of error; the others of its batch go on
            with self._runtime.database.write() as tx:
                settle_failure(self._runtime, tx, Work(row, None), error, token=self._token)
            self.failed += 1
            return None

    def _run_together(self, works: Sequence[Work]) -> bool:
        try:
            with self._runtime.database.write() as tx:
                _limit_lock_wait(tx, _BATCH_LOCK_WAIT)
                self.applied = apply(self._runtime, tx, works, token=self._token)
        except Exception as error:  # noqa: BLE001 - whatever is wrong, it is one row's: each is tried alone
            self.applied = Applied()
            _log.info("a batch of events failed; applying them one by one", rows=len(works), error=describe(error))
            return False
        return True

    def _run_alone(self, works: Sequence[Work]) -> None:
        held: set[Claim | None] = set()
        with self._runtime.database.write() as tx:
            _limit_lock_wait(tx, _ROW_LOCK_WAIT)
            for work in works:
                if work.claim in held:  # its job's lock was waited for in vain a moment ago
                    leave_to_rival(tx, work, token=self._token)
                elif self._try(tx, work):
                    held.add(work.claim)

    def _try(self, tx: Transaction, work: Work) -> bool:
        """Applies one row; says whether a rival held its job."""
        try:
            with tx.savepoint():
                applied = apply(self._runtime, tx, [work], token=self._token)
        except Exception as error:  # noqa: BLE001 - settled by the kind of error; nobody waits behind this row
            settle_failure(self._runtime, tx, work, error, token=self._token)
            self.failed += 1
            return is_rival(error)
        self.applied.add(applied)
        return False

    def _give_back(self, event_ids: Sequence[str]) -> None:
        """An outage is no fault of the rows; where it lasts, their leases run out instead."""
        try:
            with self._runtime.database.write() as tx:
                give_back(tx, event_ids, token=self._token, next_try_at=tx.now + _AFTER_OUTAGE)
        except Unavailable:
            _log.warning("claimed events stay leased until their lease ends", rows=len(event_ids))


def _limit_lock_wait(tx: Transaction, wait: timedelta) -> None:
    if not tx.is_sqlite:
        milliseconds = wait // timedelta(milliseconds=1)
        tx.execute(sa.text(f"SET LOCAL lock_timeout = {milliseconds}"))
