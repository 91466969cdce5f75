"""The message that says: something was committed that subscribers may want."""

from __future__ import annotations

from celery import Task, shared_task

from jobs.broker import RELAY
from jobs.services.relay import relay as relay_events
from jobs.services.runtime import current
from jobs.services.stream_bell import announce


@shared_task(name=RELAY, bind=True)
def relay(self: Task[..., None]) -> None:
    """Relays until nothing is left, and tells the streams.

    A message that comes again had a worker that died, or was cut off, over it.
    """
    runtime = current()
    came_before = bool(self.request.retries or (self.request.delivery_info or {}).get("redelivered"))
    if relay_events(runtime, after_loss=came_before).relayed:
        announce(runtime.redis)
