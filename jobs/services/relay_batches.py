"""One batch of the relay, inside one transaction: positions, handlers' runs, what the other subscribers fan out.

All rows go at once; where one of them fails, row by row, so that nobody waits behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import structlog

from jobs.broker import RUN_HANDLER
from jobs.core.events import EventType
from jobs.handlers import HandlerRegistry
from jobs.services.runtime import FanOut, Runtime
from jobs.storage.database import Transaction
from jobs.storage.dead_letters import dead_letter
from jobs.storage.handler_runs import Claimed, insert_runs
from jobs.storage.relay import count_relay_try, is_rows_own_fault, mark_relayed, park

MAX_TRIES = 5
# How long the message of a new run has before a sweep takes the run as well.
BELL_LEASE = timedelta(seconds=20)
_MAX_ERROR_CHARS = 500

Row = dict[str, Any]
_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Relayed:
    """What came of some batches.

    Attributes:
        relayed: Events that got their position.
        rung: Messages to handlers that reached the broker.
        failed: Row numbers that could not be relayed this time.
        parked: How many of those will not be tried again by themselves.
        more: Whether the last batch was full.
    """

    relayed: int = 0
    rung: int = 0
    failed: set[int] = field(default_factory=set)
    parked: int = 0
    more: bool = False

    def add(self, later: Relayed) -> None:
        """Adds what came of a further batch; whether there is more is the later one's word."""
        self.relayed += later.relayed
        self.rung += later.rung
        self.parked += later.parked
        self.failed |= later.failed
        self.more = later.more


@dataclass(slots=True)
class Batch:
    """One transaction's work: all rows at once, or row by row where one of them fails."""

    tx: Transaction
    handlers: HandlerRegistry
    fan_outs: Sequence[FanOut]
    position: int
    claims: list[Claimed] = field(default_factory=list)
    messages: set[tuple[str, ...]] = field(default_factory=set)
    outcome: Relayed = field(default_factory=Relayed)

    def relay(self, rows: list[Row]) -> None:
        """Relays rows; those that cannot be are counted and left."""
        if rows and self._try(rows) is not None:
            for row in rows:
                error = self._try([row])
                if error is not None:
                    self._count_failure(row, error)

    def _try(self, rows: list[Row]) -> Exception | None:
        """Relays rows under a savepoint; on a failure nothing of it stays."""
        try:
            with self.tx.savepoint():
                claims, messages = self._relay_all(rows)
        except Exception as error:  # whatever is wrong with a row, nobody waits behind it
            if not is_rows_own_fault(error):
                raise
            return error
        self.position += len(rows)
        self.claims += claims
        self.messages |= messages
        self.outcome.relayed += len(rows)
        return None

    def _relay_all(self, rows: list[Row]) -> tuple[list[Claimed], set[tuple[str, ...]]]:
        wanted = [(row["id"], name) for row in rows for name in self._wanting(row)]
        first = self.position + 1
        mark_relayed(self.tx, [(row["row_id"], first + place) for place, row in enumerate(rows)])
        messages = {message for fan_out in self.fan_outs for message in fan_out(self.tx, rows)}
        return insert_runs(self.tx, wanted, until=self.tx.now + BELL_LEASE), messages

    def _wanting(self, row: Row) -> list[str]:
        if not row["is_readable"]:
            raise ValueError("the event's data is not JSON")
        return [handler.name for handler in self.handlers.wanting(row["type"], row["provider"])]

    def _count_failure(self, row: Row, error: Exception) -> None:
        self.outcome.failed.add(row["row_id"])
        tries = count_relay_try(self.tx, row["row_id"])
        _log.warning("event not relayed", event_id=row["id"], tries=tries, error=type(error).__name__)
        if tries >= MAX_TRIES:
            self.outcome.parked += 1
            words = f"{type(error).__name__}: {error}"[:_MAX_ERROR_CHARS]
            evidence = {"type": row["type"], "error": words}
            park_event(self.tx, row, "the event could not be relayed", evidence=evidence, attempts=tries)


def park_event(tx: Transaction, row: Row, reason: str, *, evidence: Row, attempts: int) -> None:
    """Sets a row aside, under a dead letter."""
    park(tx, row["row_id"])
    if row["type"] == EventType.DEAD_LETTER_CREATED:
        return  # a letter about a letter's event would bring forth the next one, for ever
    dead_letter(
        tx,
        "event",
        row["id"],
        reason=reason,
        attempts=attempts,
        tenant=row["tenant"],
        job_id=row["job_id"],
        evidence=evidence,
    )


def ring(runtime: Runtime, claims: Collection[Claimed]) -> int:
    """Sends the messages of claimed runs; a message that is lost costs the rest of the claim's lease."""
    return sum(runtime.broker.publish(RUN_HANDLER, str(run_id), token) for run_id, token in claims)
