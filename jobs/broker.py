"""The bell: how one part of Homing wakes another.

A message carries ids, never payloads, and may be lost: everything it announces is already a committed row that a
sweep will find. Hence ``publish`` never raises and never waits for long.
"""

from __future__ import annotations

from typing import Protocol

# Task names are public API: they name messages that may sit in a queue while a release is rolled out.
SUBMIT = "jobs.submission.submit"
POLL = "jobs.polling.poll"
CANCEL = "jobs.canceling.cancel"
STOP_EXTRA_RUN = "jobs.canceling.stop_extra_run"
FETCH_ARTIFACT = "jobs.artifacts.fetch"
READ_OUTPUT = "jobs.output.read"
RELAY = "jobs.relay.relay"
RUN_HANDLER = "jobs.handlers.run"
DRAIN = "webhooks.incoming.drain"
DISPATCH = "webhooks.outgoing.dispatch"
DELIVER = "webhooks.outgoing.deliver"
SWEEP = "reconciler.sweep"
CANARY = "reconciler.canary"
PING = "reconciler.ping"

# Queue of each task; ``homing.worker`` routes by this table.
QUEUES = {
    SUBMIT: "submit",
    POLL: "poll",
    CANCEL: "submit",
    STOP_EXTRA_RUN: "submit",
    FETCH_ARTIFACT: "artifacts",
    READ_OUTPUT: "streams",
    RELAY: "events",
    RUN_HANDLER: "handlers",
    DRAIN: "events",
    DISPATCH: "events",  # claims and rings, no more
    DELIVER: "deliver",
    SWEEP: "reconcile",
    PING: "poll",  # a slow watcher must not hold up sweeps
}
EVENT_QUEUES = ("events", "reconcile")
IO_QUEUES = ("submit", "poll", "handlers", "artifacts", "deliver")
# Of work that waits for minutes: each piece holds a thread, and none of the slots above.
STREAM_QUEUES = ("streams",)
ALL_QUEUES = (*EVENT_QUEUES, *IO_QUEUES, *STREAM_QUEUES)


class Broker(Protocol):
    """Rings bells."""

    def publish(self, name: str, *args: str) -> bool:
        """Sends one message; False where it could not be sent (a sweep will do its work)."""
        ...


class SilentBroker:
    """A broker whose messages all get lost: the sweeps must do everything."""

    def publish(self, name: str, *args: str) -> bool:
        del name, args
        return False
