"""The message that says: an event was stored."""

from __future__ import annotations

from celery import shared_task

from jobs.broker import DRAIN
from jobs.services.runtime import current
from webhooks.incoming.applying.drain import drain as drain_inbox


@shared_task(name=DRAIN)
def drain() -> None:
    """Applies what waits."""
    drain_inbox(current())
