"""The message that says: something was committed that subscribers may want."""

from __future__ import annotations

from celery import shared_task

from jobs.broker import RELAY
from jobs.services.relay import relay as relay_events
from jobs.services.runtime import current


@shared_task(name=RELAY)
def relay() -> None:
    """Relays until nothing is left."""
    relay_events(current())
