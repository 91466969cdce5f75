"""Running one Python handler for one event.

A plain handler runs outside any transaction and is then marked done: at least once, always with the same event id.
A transactional one runs in the transaction of its mark: exactly once. The try is counted, and the next one planned,
before the function is called, so a function that kills its worker waits longer each time and ends as a dead letter
like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

import structlog

from jobs.core import instants
from jobs.core.backoff import Rng, poll_wait
from jobs.core.errors import Stale
from jobs.core.events import Event
from jobs.handlers import Handler, HandlerRegistry
from jobs.ids import new_token
from jobs.services.lease_keeper import LeaseKeeper
from jobs.services.relay import BATCH
from jobs.services.relay_batches import BELL_LEASE
from jobs.services.runtime import Runtime
from jobs.storage.database import Transaction
from jobs.storage.dead_letters import dead_letter
from jobs.storage.handler_runs import Claimed, claim_due, consume, find_run, update_held
from jobs.storage.premise import Premise, always
from jobs.storage.relay import find_event
from jobs.telemetry import span

# Seconds until the next try after the first, second … has failed; the last one repeats.
WAITS_S = (5, 30, 120, 600, 3600)
MAX_TRIES = 8
# A function whose starts never end takes its worker along each time.
MAX_STARTS = 3
# Renewed while the function runs, so that only a dead worker's lease ends.
LEASE = timedelta(seconds=20)
_RENEW_EVERY_S = 6.0
# What a transactional function may compute between two statements (PostgreSQL): it holds locks meanwhile, and those of
# a process that was stopped in it are free after that. Work that takes longer is a plain handler's, which has an hour.
_LONGEST_PAUSE = timedelta(seconds=60)
_MAX_ERROR_CHARS = 500

Row = dict[str, Any]
_log = structlog.get_logger(__name__)


class Handled(StrEnum):
    """What came of one message."""

    DONE = "done"
    FAILED = "failed"  # will be tried again
    DEAD = "dead"  # waits for a person
    SKIPPED = "skipped"  # done, not due, or somebody else's
    LOST = "lost"  # its lease passed on while it ran


@dataclass(frozen=True, slots=True)
class _Work:
    """A run that is ours: what to call, with what, and the lease every write repeats."""

    run: Row
    token: str
    handler: Handler
    event: Row

    @property
    def about(self) -> dict[str, Any]:
        """For the log."""
        names = {"event_id": self.event["id"], "type": self.event["type"], "handler": self.handler.name}
        return {**names, "tries": self.run["tries"]}


def claim_due_runs(runtime: Runtime, limit: int = BATCH, *, premise: Premise = always) -> list[Claimed]:
    """Claims runs that are due, for messages that carry the claim's token.

    Raises:
        Stale: The premise failed.
    """
    with runtime.database.write() as tx:
        premise(tx)
        return claim_due(tx, limit, until=tx.now + BELL_LEASE)


def run_handler(runtime: Runtime, run_id: int, token: str | None = None) -> Handled:
    """Runs a handler once, if the run is ours to take.

    Args:
        runtime: The process's parts.
        run_id: The run.
        token: Of the message; without one the run is taken if it is due and nobody holds it.
    """
    work = _take(runtime, run_id, token)
    if not isinstance(work, _Work):
        return work
    try:
        with span("run_handler", clock=runtime.clock, job=work.event["job_id"]):
            _call(runtime, work)
    except Stale:
        _log.warning("handler's lease was lost", **work.about)
        return Handled.LOST
    except Exception as error:  # noqa: BLE001 - a stranger's code: whatever it raises is a failed try, on the row
        return _record_failure(runtime, work, error)
    return Handled.DONE


def _take(runtime: Runtime, run_id: int, token: str | None) -> _Work | Handled:
    """Counts the try and plans the next one, before anything is called."""
    with runtime.database.write() as tx:
        run = find_run(tx, run_id)
        if run is None:
            return Handled.SKIPPED
        fresh = new_token()
        changes = _next_try(tx, run, fresh, runtime.rng)
        if not consume(tx, run_id, held=token, changes=changes):
            return Handled.SKIPPED
        return _work_or_letter(tx, {**run, **changes}, runtime.handlers)


def _next_try(tx: Transaction, run: Row, token: str, rng: Rng) -> Row:
    tries = run["tries"] + 1
    return {
        "tries": tries,
        "starts": run["starts"] + 1,
        "next_try_at": tx.now + max(_wait_after(tries, rng), LEASE * (1 << run["starts"])),
        "lease_token": token,
        "lease_until": tx.now + LEASE,
    }


def _wait_after(tries: int, rng: Rng) -> timedelta:
    """How long to wait after so many tries (from 1): between half of the table's wait and all of it."""
    longest = timedelta(seconds=WAITS_S[min(tries, len(WAITS_S)) - 1])
    return poll_wait(0, base=longest, cap=longest, rng=rng)


def _work_or_letter(tx: Transaction, run: Row, handlers: HandlerRegistry) -> _Work | Handled:
    event, handler = _read_event(tx, run["event_id"]), handlers.find(run["handler"])
    if event is None:
        return _bury(tx, run, None, reason="the event has been erased, or cannot be read")
    if handler is None:
        missing = f"no loaded module has the handler {run['handler']!r}; name its module in [plugins] modules"
        return _bury(tx, run, event, reason=missing)
    if run["starts"] > MAX_STARTS:
        begun = {**run, "tries": run["tries"] - 1}
        reason = f"{MAX_STARTS} starts never came to an end: it may be what stopped its worker"
        return _bury(tx, begun, event, reason=reason)
    return _Work(run, run["lease_token"], handler, event)


def _read_event(tx: Transaction, event_id: str) -> Row | None:
    try:
        return find_event(tx, event_id)
    except ValueError:  # in SQLite the data is text, and a damaged file may hold anything
        return None


def _call(runtime: Runtime, work: _Work) -> None:
    event = _envelope(work.event)
    if work.handler.transactional:
        with runtime.database.write() as tx:
            # The mark comes first: it locks the run, so that a second copy waits, and a lost lease costs nothing.
            _mark_done(tx, work)
            tx.allow_idle(_LONGEST_PAUSE)
            work.handler.function(event, tx.connection)
        return
    with LeaseKeeper(_renewal(runtime, work), every_s=_RENEW_EVERY_S):
        work.handler.function(event)
        # Under the renewed lease: it has taken effect, and a busy writer is no reason to call it again.
        runtime.database.insist(lambda tx: _mark_done(tx, work))


def _mark_done(tx: Transaction, work: _Work) -> None:
    done = {"done_at": tx.now, "next_try_at": None, "lease_token": None, "lease_until": None, "error": None}
    if not update_held(tx, work.run["id"], held=work.token, changes=done):
        raise Stale("the handler's lease has passed on")


def _renewal(runtime: Runtime, work: _Work) -> Callable[[], bool]:
    def renew() -> bool:
        with runtime.database.write() as tx:
            return update_held(tx, work.run["id"], held=work.token, changes={"lease_until": tx.now + LEASE})

    return renew


def _envelope(row: Row) -> Event:
    return Event(
        id=row["id"],
        type=row["type"],
        schema_version=row["schema_version"],
        sequence=row["sequence"],
        position=row["position"],
        occurred_at=instants.to_text(row["occurred_at"]),
        tenant=row["tenant"],
        data=row["data"],
    )


def _record_failure(runtime: Runtime, work: _Work, error: Exception) -> Handled:
    text = f"{type(error).__name__}: {error}"[:_MAX_ERROR_CHARS]
    _log.warning("handler failed", **work.about, error=text)
    with runtime.database.write() as tx:
        run = {**work.run, "error": text, "first_failed_at": work.run["first_failed_at"] or tx.now}
        if run["tries"] >= MAX_TRIES:
            return _bury(tx, run, work.event, reason=f"the handler failed {run['tries']} times; last: {text}")
        after = {
            "next_try_at": tx.now + _wait_after(run["tries"], runtime.rng),
            "starts": 0,
            "lease_token": None,
            "lease_until": None,
            "first_failed_at": run["first_failed_at"],
            "error": text,
        }
        return Handled.FAILED if update_held(tx, run["id"], held=work.token, changes=after) else Handled.LOST


def _bury(tx: Transaction, run: Row, event: Row | None, *, reason: str) -> Handled:
    """Ends a run as a dead letter, under its lease."""
    first_failed_at = run["first_failed_at"] or tx.now
    end = {
        "next_try_at": None,
        "lease_token": None,
        "lease_until": None,
        "first_failed_at": first_failed_at,
        "error": run["error"] or reason,
        "tries": run["tries"],
    }
    if not update_held(tx, run["id"], held=run["lease_token"], changes=end):
        return Handled.LOST
    evidence = {"event": run["event_id"], "handler": run["handler"], "error": run["error"]}
    dead_letter(
        tx,
        "handler",
        str(run["id"]),
        reason=reason,
        attempts=run["tries"],
        tenant=event["tenant"] if event else None,
        job_id=event["job_id"] if event else None,
        evidence=evidence,
        first_failed_at=first_failed_at,
    )
    return Handled.DEAD
