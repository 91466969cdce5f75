"""Sending one delivery: count, send, record.

The try is counted and its line in the log opened before anything is sent. A worker that dies in between leaves a
lease that ends; the next try sends the same bytes under the same id, newly signed. Who lost the lease records nothing
but its own line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from jobs import telemetry
from jobs.core.errors import Permanent
from jobs.ids import new_token
from jobs.services.runtime import Runtime
from jobs.storage.database import Transaction
from jobs.telemetry import span
from webhooks.outgoing import lanes
from webhooks.outgoing.attempt import Answered, Send
from webhooks.outgoing.delivery_rows import begin_attempt, find_try, finish_attempt
from webhooks.outgoing.lanes import Claim
from webhooks.outgoing.outcomes import Outcome, give_up, record
from webhooks.outgoing.schema import EndpointKind
from webhooks.outgoing.sealing import Sealer, Unopened, sealer_for
from webhooks.outgoing.secrets import live
from webhooks.outgoing.signing import signature_headers
from webhooks.outgoing.tenant_secrets import tenant_secrets

_CONTENT_TYPE = {"Content-Type": "application/json"}
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Work:
    """A try that is ours.

    Attributes:
        row: The delivery, with this try counted.
        token: Of its lease; every write repeats it.
        url: Where to.
        body: The bytes.
        stored: The sealed secrets.
    """

    row: Mapping[str, Any]
    token: str
    url: str
    body: bytes
    stored: list[dict[str, Any]]


def deliver(runtime: Runtime, claim: Claim, send: Send) -> tuple[Outcome, Claim | None]:
    """Makes one try, if the claim is still ours, and claims the next delivery of the same endpoint.

    Args:
        runtime: The process's parts.
        claim: The delivery, and the token of its message.
        send: How a try is made.

    Raises:
        Unavailable: The database is away; the delivery is due again when its lease ends.
    """
    work = _begin(runtime, claim)
    if work is None:
        return Outcome.SKIPPED, None
    with span("deliver", clock=runtime.clock, event=work.row["event_id"], job=work.row["job_id"]):
        answered, ms = _send(runtime, work, send)
        outcome, following = _record(runtime, work, answered, ms=ms)
    telemetry.DELIVERIES.labels(str(outcome)).inc()
    _log.info("delivery", delivery=claim.delivery_id, outcome=outcome, status=answered.status, error=answered.error)
    return outcome, following


def _begin(runtime: Runtime, claim: Claim) -> _Work | None:
    with runtime.database.write() as tx:
        row = find_try(tx, claim.delivery_id)
        fresh = new_token()
        if row is None or give_up(tx, row, held=claim.token):
            return None
        if not begin_attempt(tx, row, held=claim.token, fresh=fresh):
            return None
        counted = {**row, "attempts": row["attempts"] + 1, "tries": row["tries"] + 1}
        stored = _stored(tx, row, sealer_for(runtime.settings))
        return _Work(counted, fresh, row["url"] or row["lane_url"], bytes(row["body"]), stored)


def _stored(tx: Transaction, row: Mapping[str, Any], sealer: Sealer) -> list[dict[str, Any]]:
    if row["lane_kind"] == EndpointKind.CALLBACK:
        return tenant_secrets(tx, sealer, row["tenant"])
    return list(row["secrets"])


def _send(runtime: Runtime, work: _Work, send: Send) -> tuple[Answered, int]:
    began = runtime.clock.monotonic()
    try:
        answered = send(work.url, headers=_headers(runtime, work), body=work.body)
    except Unopened as error:
        answered = Answered(error="secret_unreadable", excerpt=error.detail)
    except Permanent as error:
        answered = Answered(error="not_sendable", excerpt=error.detail)
    return answered, round((runtime.clock.monotonic() - began) * 1000)


def _headers(runtime: Runtime, work: _Work) -> dict[str, str]:
    now = runtime.clock.now()
    secrets = live(sealer_for(runtime.settings), work.stored, at=now)
    return {**_CONTENT_TYPE, **signature_headers(secrets, body=work.body, event_id=work.row["event_id"], at=now)}


def _record(runtime: Runtime, work: _Work, answered: Answered, *, ms: int) -> tuple[Outcome, Claim | None]:
    with runtime.database.write() as tx:
        finish_attempt(tx, work.row["id"], work.row["attempts"], answered, ms=ms)  # its own line waits for no lane
        lane = lanes.lock_lane(tx, work.row["endpoint_id"])
        if lane is None:
            return Outcome.LOST, None
        outcome = record(tx, lane, work.row, answered, held=work.token, rng=runtime.rng)
        following = _next_of(tx, lane) if outcome is not Outcome.LOST else None
        lanes.rearm(tx, lane)
    if outcome is Outcome.SUCCEEDED:
        telemetry.DELIVERY_LAG_S.observe((runtime.clock.now() - work.row["occurred_at"]).total_seconds())
    return outcome, following


def _next_of(tx: Transaction, lane: lanes.Lane) -> Claim | None:
    """The next delivery of an endpoint that is well: whoever has its slot keeps it."""
    if lane["failing_since"] is not None or not lanes.slots(tx, lane):
        return None
    return next(iter(lanes.claim(tx, lane, 1)), None)
