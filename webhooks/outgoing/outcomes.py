"""What follows from one try: for the delivery, and for the health of its endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from jobs.core import instants
from jobs.core.backoff import Rng, parse_retry_after
from jobs.core.events import EventType
from jobs.storage.database import Transaction
from jobs.storage.outbox import append_event
from webhooks.outgoing import retrying
from webhooks.outgoing.attempt import Answered
from webhooks.outgoing.delivery_rows import settle_pending, update_held
from webhooks.outgoing.lanes import Lane, lock_lane, rearm
from webhooks.outgoing.letters import write_letter
from webhooks.outgoing.schema import DeliveryState, EndpointKind, EndpointState, endpoints


class Outcome(StrEnum):
    """What came of one claim."""

    SUCCEEDED = "succeeded"
    RETRIED = "retried"  # failed, and will be tried again
    EXHAUSTED = "exhausted"  # failed for the last time: a dead letter
    REFUSED = "refused"  # the receiver wants nothing more: 410
    HELD = "held"  # failed, and its endpoint is now disabled
    LOST = "lost"  # its lease passed on meanwhile; nothing was recorded but the attempt
    SKIPPED = "skipped"  # the claim had passed on before anything was sent


def record(tx: Transaction, lane: Lane, row: Mapping[str, Any], answered: Answered, *, held: str, rng: Rng) -> Outcome:
    """Writes what came of a try under its lease.

    Args:
        tx: The open transaction.
        lane: The endpoint's row, locked; changed to what is stored afterwards.
        row: The delivery, with this try counted.
        answered: What came back.
        held: The token of its lease.
        rng: For the jitter.
    """
    if answered.is_success:
        done = {"state": str(DeliveryState.SUCCEEDED), "next_try_at": None, "finished_at": tx.now}
        return _kept(tx, lane, row, done, held=held, outcome=Outcome.SUCCEEDED)
    failed = {**row, "first_failed_at": row["first_failed_at"] or tx.now}
    is_last = row["tries"] >= retrying.MAX_TRIES or (answered.is_gone and lane["kind"] == EndpointKind.CALLBACK)
    changes = _end(tx, failed) if is_last else _retry(tx, failed, answered, rng)
    outcome = Outcome.EXHAUSTED if is_last else Outcome.RETRIED
    outcome = _kept(tx, lane, failed, changes, held=held, outcome=outcome)
    if outcome is Outcome.LOST:
        return outcome
    return _blame(tx, lane, failed, answered, outcome)


def give_up(tx: Transaction, row: Mapping[str, Any], *, held: str) -> bool:
    """Ends a delivery whose starts never come to their end; False where there is no need to, or it is not ours.

    No fault of the endpoint's: it may be what stops the worker that sends it.
    """
    if row["starts"] < retrying.MAX_STARTS:
        return False
    lane = lock_lane(tx, row["endpoint_id"])
    ended = {**row, "first_failed_at": row["first_failed_at"] or tx.now}
    if lane is None or not update_held(tx, row["id"], held=held, changes=_end(tx, ended)):
        return False
    write_letter(tx, ended, reason=f"{retrying.MAX_STARTS} starts never ended: it may be what stopped its worker")
    rearm(tx, lane)
    return True


def disable(tx: Transaction, lane: Lane, *, reason: str) -> None:
    """Disables an endpoint: what waits for it is held, and one ``endpoint.disabled`` says so."""
    lane.update(state=str(EndpointState.DISABLED), disabled_at=tx.now, disabled_reason=reason, next_send_at=None)
    names = ("state", "disabled_at", "disabled_reason", "next_send_at")
    _store(tx, lane, names)
    settle_pending(tx, lane["id"], DeliveryState.HELD)
    told = {name: lane[name] for name in ("id", "url", "events", "description")}
    told |= {"disabled_at": instants.to_text(tx.now), "reason": reason}
    append_event(tx, EventType.ENDPOINT_DISABLED, tenant=lane["tenant"], data={"endpoint": told})


def _kept(
    tx: Transaction, lane: Lane, row: Mapping[str, Any], changes: Mapping[str, Any], *, held: str, outcome: Outcome
) -> Outcome:
    if not update_held(tx, row["id"], held=held, changes=changes):
        return Outcome.LOST
    if outcome is Outcome.SUCCEEDED and lane["failing_since"] is not None:
        lane.update(failing_since=None, last_failed_at=None)
        _store(tx, lane, ("failing_since", "last_failed_at"))
    return outcome


def _retry(tx: Transaction, row: Mapping[str, Any], answered: Answered, rng: Rng) -> dict[str, Any]:
    wait = retrying.next_wait(row["tries"], answered.retry_after, now=tx.now, rng=rng)
    return {"next_try_at": tx.now + wait, "first_failed_at": row["first_failed_at"]}


def _end(tx: Transaction, row: Mapping[str, Any]) -> dict[str, Any]:
    ended = {"state": str(DeliveryState.FAILED), "next_try_at": None, "finished_at": tx.now}
    return {**ended, "first_failed_at": row["first_failed_at"]}


def _blame(tx: Transaction, lane: Lane, row: Mapping[str, Any], answered: Answered, outcome: Outcome) -> Outcome:
    """What a failure says of the endpoint."""
    since = retrying.failing_since(lane["failing_since"], lane["last_failed_at"], now=tx.now)
    lane.update(failing_since=since, last_failed_at=tx.now)
    if answered.asks_for_a_pause:
        pause = parse_retry_after(
            answered.retry_after, now=tx.now, default=retrying.WAITS[0], maximum=retrying.MAX_RETRY_AFTER
        )
        lane["not_before"] = tx.now + pause
    _store(tx, lane, ("failing_since", "last_failed_at", "not_before"))
    if outcome is Outcome.EXHAUSTED:
        write_letter(tx, row, reason=_reason(row, answered))
    if lane["kind"] == EndpointKind.CALLBACK or lane["state"] == EndpointState.DISABLED:
        return Outcome.REFUSED if answered.is_gone else outcome
    return _judge(tx, lane, answered, since, outcome)


def _judge(tx: Transaction, lane: Lane, answered: Answered, since: Any, outcome: Outcome) -> Outcome:
    if answered.is_gone:
        disable(tx, lane, reason="it answered 410 Gone")
        return Outcome.REFUSED
    if retrying.is_given_up(since, now=tx.now):
        disable(tx, lane, reason=f"nothing has reached it since {instants.to_text(since)}")
        return outcome if outcome is Outcome.EXHAUSTED else Outcome.HELD
    return outcome


def _reason(row: Mapping[str, Any], answered: Answered) -> str:
    return f"the endpoint did not take it in {row['tries']} tries; the last one: {answered.error}"


def _store(tx: Transaction, lane: Lane, names: tuple[str, ...]) -> None:
    values = {name: lane[name] for name in names}
    tx.execute(sa.update(endpoints).where(endpoints.c.id == lane["id"]).values(values))
