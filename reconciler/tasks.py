"""The messages of beat, and the ping to the world."""

from __future__ import annotations

from celery import shared_task

from jobs.broker import CANARY, PING, SWEEP
from reconciler import ping
from reconciler.schedule import CANARY_PERIOD
from reconciler.ticking import beat, current


# Flower is told of work. Each of these would be three messages to it, several times a second, about none.
@shared_task(name=SWEEP, send_events=False)
def sweep(name: str) -> None:
    """One tick."""
    current().tick(name)


@shared_task(name=CANARY, send_events=False)
def canary(queue: str) -> None:
    """Proves that a message sent to a queue is received and worked on."""
    beat(current().runtime, {f"queue.{queue}": CANARY_PERIOD})


@shared_task(name=PING)
def ping_outside() -> None:
    """Tells the dead man's switch outside that sweeps are good."""
    url = current().runtime.settings.heartbeat_url
    if url:
        ping.ping(url)
