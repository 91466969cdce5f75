"""The message that says: something was committed that subscribers may want."""

from __future__ import annotations

from celery import shared_task

from jobs.broker import RELAY
from jobs.services.relay import relay as relay_events
from jobs.services.runtime import current
from jobs.services.stream_bell import announce


@shared_task(name=RELAY)
def relay() -> None:
    """Relays until nothing is left, and tells the streams."""
    runtime = current()
    if relay_events(runtime).relayed:
        announce(runtime.redis)
