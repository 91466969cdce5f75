"""Hangs the receiver and the inbox on a Flask application."""

from __future__ import annotations

from flask import Flask

from jobs import telemetry
from jobs.services.runtime import Runtime
from webhooks.incoming import api
from webhooks.incoming.bell import Bell, RingFlag
from webhooks.incoming.blueprint import receiving_blueprint
from webhooks.incoming.committer import Committer
from webhooks.incoming.hot_path import wrap
from webhooks.incoming.ingest import ingest, record_copies
from webhooks.incoming.receiver import Receiver

EXTENSION = "homing.receiver"


def install(app: Flask, runtime: Runtime) -> Receiver:
    """Adds ``/webhooks/…``, through both doors, and ``/v1/inbox``.

    Threads and connections begin with the first webhook, in whichever process that is.
    """
    receiver = build_receiver(runtime)
    app.extensions[EXTENSION] = receiver
    app.register_blueprint(receiving_blueprint(receiver))
    app.register_blueprint(api.blueprint)
    app.wsgi_app = wrap(app.wsgi_app, receiver)  # type: ignore[assignment,method-assign] # Flask's own way to add middleware
    return receiver


def build_receiver(runtime: Runtime) -> Receiver:
    """The receiver of a process, with its committer and its bell."""
    bell = Bell(RingFlag(runtime.redis), runtime.broker, monotonic=runtime.clock.monotonic)
    committer = Committer(
        lambda events: ingest(runtime.database, events),
        count_copies=lambda copies: record_copies(runtime.database, copies),
        on_commit=bell.ring,
    )
    return Receiver(
        runtime.providers,
        committer=committer,
        clock=runtime.clock,
        max_bytes=runtime.settings.webhook_max_bytes,
        measure=_measure,
    )


def _measure(provider: str, outcome: str, seconds: float) -> None:
    telemetry.WEBHOOKS_RECEIVED.labels(provider, outcome).inc()
    telemetry.WEBHOOK_ACK_S.observe(seconds)
