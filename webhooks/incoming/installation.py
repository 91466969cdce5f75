"""Hangs the receiver and the inbox on a Flask application."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Intake:
    """What a process takes webhooks in with. Threads begin with the first webhook, in whichever process that is."""

    receiver: Receiver
    committer: Committer
    bell: Bell

    def stop(self) -> None:
        """Commits what waits, rings for it, and ends the threads."""
        self.committer.stop()
        self.bell.stop()


def install(app: Flask, runtime: Runtime) -> Intake:
    """Adds ``/webhooks/…``, through both doors, and ``/v1/inbox``."""
    intake = build_intake(runtime)
    app.register_blueprint(receiving_blueprint(intake.receiver))
    app.register_blueprint(api.blueprint)
    app.wsgi_app = wrap(app.wsgi_app, intake.receiver)  # type: ignore[assignment,method-assign] # as Flask documents it
    return intake


def build_intake(runtime: Runtime) -> Intake:
    """Joins the receiver's parts."""
    bell = Bell(RingFlag(runtime.redis), runtime.broker, monotonic=runtime.clock.monotonic)
    committer = Committer(
        lambda events: ingest(runtime.database, events),
        count_copies=lambda copies: record_copies(runtime.database, copies),
        on_commit=bell.ring,
    )
    receiver = Receiver(
        runtime.providers,
        committer=committer,
        clock=runtime.clock,
        max_bytes=runtime.settings.webhook_max_bytes,
        measure=_measure,
    )
    return Intake(receiver, committer, bell)


def _measure(provider: str, outcome: str, seconds: float) -> None:
    telemetry.WEBHOOKS_RECEIVED.labels(provider, outcome).inc()
    telemetry.WEBHOOK_ACK_S.observe(seconds)
