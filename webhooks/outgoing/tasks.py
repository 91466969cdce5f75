"""The messages of deliveries."""

from __future__ import annotations

from celery import shared_task

from jobs.broker import DELIVER, DISPATCH
from jobs.services.runtime import current
from webhooks.outgoing.lanes import Claim
from webhooks.outgoing.rounds import deliver_all, look_for_work


@shared_task(name=DISPATCH)
def dispatch() -> None:
    """Claims what may be sent, and rings for it."""
    look_for_work(current())


@shared_task(name=DELIVER)
def deliver(*claims: str) -> None:
    """Sends what was claimed; each argument is ``<delivery>:<token>``."""
    pairs = (claim.partition(":") for claim in claims)
    deliver_all(current(), [Claim(delivery_id, token) for delivery_id, _, token in pairs])
