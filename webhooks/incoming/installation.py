"""Hangs the receiver and the inbox on a Flask application."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from flask import Flask
from prometheus_client import Counter

from jobs import telemetry
from jobs.net.http import HttpClient
from jobs.services.runtime import Runtime
from webhooks.incoming.bell import Bell, RingFlag
from webhooks.incoming.inbox import api, recheck_api
from webhooks.incoming.inbox.rechecking import recheck_after_new_keys
from webhooks.incoming.receiving.admission import Admission
from webhooks.incoming.receiving.blueprint import receiving_blueprint
from webhooks.incoming.receiving.committer import Committer
from webhooks.incoming.receiving.hot_path import wrap
from webhooks.incoming.receiving.ingest import ingest, is_known_token, keep_refused, record_copies
from webhooks.incoming.receiving.key_sets import KeySets
from webhooks.incoming.receiving.quarantine import Quarantine
from webhooks.incoming.receiving.receiver import Receiver


@dataclass(frozen=True, slots=True)
class Intake:
    """What a process takes webhooks in with. Threads begin with the first webhook, in whichever process that is."""

    receiver: Receiver
    committer: Committer
    bell: Bell
    admission: Admission
    key_sets: KeySets
    quarantine: Quarantine

    def stop(self) -> None:
        """Commits what waits, rings for it, and ends the threads."""
        self.committer.stop()
        self.bell.stop()
        self.quarantine.stop()
        self.key_sets.wait()


def install(app: Flask, runtime: Runtime, *, prefetch: bool = False) -> Intake:
    """Adds ``/webhooks/…``, through both doors, ``/v1/inbox`` and ``/v1/providers/{name}/recheck``.

    Args:
        app: The application.
        runtime: The process's parts.
        prefetch: Whether senders' key sets are fetched at once: a serving process should know them at its first
            webhook, and no other process should dial anybody.
    """
    intake = build_intake(runtime)
    app.extensions[api.INTAKE] = intake
    app.register_blueprint(receiving_blueprint(intake.receiver))
    app.register_blueprint(api.blueprint)
    app.register_blueprint(recheck_api.blueprint)
    if prefetch:
        entries = runtime.providers.values()
        intake.key_sets.prefetch({entry.config.key_set_url for entry in entries if entry.config.key_set_url})
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
    key_sets, admission = _build_admission(runtime)
    quarantine = Quarantine(lambda refused: keep_refused(runtime.database, refused))
    receiver = Receiver(
        runtime.providers,
        admission=admission,
        committer=committer,
        quarantine=quarantine,
        clock=runtime.clock,
        max_bytes=runtime.settings.webhook_max_bytes,
        measure=_measure,
    )
    return Intake(receiver, committer, bell, admission, key_sets, quarantine)


def _build_admission(runtime: Runtime) -> tuple[KeySets, Admission]:
    """These two need each other: what new keys prove is taken in by whoever asks for the keys."""
    client = HttpClient()
    key_sets = KeySets(
        lambda url: client.request("GET", url),
        monotonic=runtime.clock.monotonic,
        on_new_keys=lambda url: recheck_after_new_keys(runtime, admission, url),
    )
    admission = Admission(
        key_sets,
        public_url=runtime.settings.public_url,
        max_bytes=runtime.settings.webhook_max_bytes,
        is_known_token=lambda provider, token: is_known_token(runtime.database, provider, token),
    )
    return key_sets, admission


@cache  # providers and outcomes are few, and each look-up by labels takes a lock
def _counter(provider: str, outcome: str) -> Counter:
    return telemetry.WEBHOOKS_RECEIVED.labels(provider, outcome)


def _measure(provider: str, outcome: str, seconds: float) -> None:
    _counter(provider, outcome).inc()
    telemetry.WEBHOOK_ACK_S.observe(seconds)
