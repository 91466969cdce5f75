"""A receiver over a real database, called through either door; the simulator's dialect, signed for real."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from apiflask import APIFlask

from jobs.api.context import EXTENSION
from jobs.api.problems import register_problems
from jobs.clock import FakeClock
from jobs.config.providers import ProviderConfig
from jobs.core.signatures import parse_secrets, sign
from jobs.handlers import Handler
from jobs.net.http import HttpClient
from jobs.providers.registry import build_adapter
from jobs.services.runtime import ProviderEntry, Runtime
from jobs.storage.attempts import get_attempt
from jobs.storage.database import Database
from jobs.storage.jobs import get_job
from jobs.storage.schema import dead_letters, job_transitions, outbox
from tests.factories import new_job
from tests.fakes.broker import RecordingBroker
from tests.fakes.runtime import a_runtime
from tests.vectors import TEXT_SECRET, WHSEC_SECRET
from webhooks.incoming.applying.drain import drain
from webhooks.incoming.inbox import api, recheck_api
from webhooks.incoming.installation import Intake, build_intake
from webhooks.incoming.receiving.blueprint import receiving_blueprint
from webhooks.incoming.receiving.hot_path import wrap
from webhooks.incoming.schema import inbox_events

#: Provider entries of these tests by their scheme.
SCHEMES = {"renders": "standard-webhooks", "stripy": "stripe", "plain": "hmac-body"}
SECRETS = {"standard-webhooks": WHSEC_SECRET, "stripe": TEXT_SECRET, "hmac-body": TEXT_SECRET}
DOORS = ("hot", "flask")


@dataclass(frozen=True)
class Reply:
    """An answer as it went out."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def said(self) -> str:
        """The status word of an acknowledgement."""
        assert self.status == 200, self.body
        return str(self.json["status"])


def an_entry(name: str, scheme: str, clock: FakeClock, **config: Any) -> ProviderEntry:
    known = [SECRETS[scheme]] if scheme in SECRETS else []
    secrets = config.pop("webhook_secrets", None) or parse_secrets(scheme, config.pop("secrets", known))
    settings = ProviderConfig(
        **{"adapter": "simulator", "base_url": "http://127.0.0.1:1", **config},
        webhook_scheme=scheme,
        webhook_secrets=secrets,
    )
    return ProviderEntry(name, settings, settings.policy, build_adapter(settings, HttpClient(), clock))


def call(
    app: Any,
    path: str,
    *,
    method: str = "POST",
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    environ: Mapping[str, Any] | None = None,
) -> Reply:
    """One request, byte for byte, as a server would hand it over."""
    request = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "SCRIPT_NAME": "",
        "QUERY_STRING": "",
        "SERVER_NAME": "homing.test",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(),
        "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": "application/json",
        **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in (headers or {}).items()},
        **(environ or {}),
    }
    started: list[Any] = []
    content = b"".join(app(request, lambda status, sent, _info=None: started.extend([status, sent])))
    return Reply(int(started[0].split()[0]), content, dict(started[1]))


@dataclass
class World:
    """One process that takes webhooks in, and its database."""

    runtime: Runtime
    clock: FakeClock
    broker: RecordingBroker
    intake: Intake
    app: Any

    @property
    def database(self) -> Database:
        return self.runtime.database

    def deliver(
        self,
        body: bytes | Mapping[str, Any],
        *,
        provider: str = "renders",
        token: str | None = None,
        delivery_id: str = "msg_1",
        signed_at: datetime | None = None,
        **request: Any,
    ) -> Reply:
        """A signed event, as its provider would send it."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        scheme = SCHEMES.get(provider, "standard-webhooks")
        signature = sign(
            scheme,
            secret=SECRETS[scheme],
            body=raw,
            delivery_id=delivery_id,
            at=signed_at or self.clock.now(),
        )
        path = f"/webhooks/{provider}/{token}" if token else f"/webhooks/{provider}"
        headers = {**signature, **request.pop("headers", {})}
        return call(self.app, request.pop("path", path), body=raw, headers=headers, **request)

    def drain(self) -> None:
        drain(self.runtime)

    def events(self) -> list[dict[str, Any]]:
        """Rows of the inbox, oldest first; counts of repeats included."""
        self.intake.committer.stop()  # writes what it still has to count
        with self.database.read() as tx:
            return tx.rows(sa.select(inbox_events).order_by(inbox_events.c.id))

    def event(self) -> dict[str, Any]:
        """The only row."""
        (row,) = self.events()
        return row

    def job(self, job_id: str) -> dict[str, Any]:
        with self.database.read() as tx:
            return dict(get_job(tx, job_id))

    def history(self, job_id: str) -> list[tuple[str, str, bool]]:
        statement = sa.select(job_transitions).where(job_transitions.c.job_id == job_id).order_by(job_transitions.c.id)
        with self.database.read() as tx:
            return [(row["from_state"], row["to_state"], row["applied"]) for row in tx.rows(statement)]

    def told(self, job_id: str) -> list[str]:
        """Types of the events written about a job."""
        statement = sa.select(outbox.c.type).where(outbox.c.job_id == job_id).order_by(outbox.c.row_id)
        with self.database.read() as tx:
            return [row["type"] for row in tx.rows(statement)]

    def letters(self) -> list[dict[str, Any]]:
        with self.database.read() as tx:
            return tx.rows(sa.select(dead_letters))

    def submitted_job(self, run: str = "p-123", *, provider: str = "renders", **columns: Any) -> tuple[str, str]:
        """A job whose run the provider has named; its id and its callback token."""
        job = new_job(self.database, provider=provider, next_submit_at=None, **columns)
        with self.database.write() as tx:
            attempt = get_attempt(tx, job["id"], 1)
            self.runtime.observer.observe(tx, job["id"], acceptance(run, self.clock.now()))
        return str(job["id"]), str(attempt["token"])

    def pending_job(self, *, provider: str = "renders", **columns: Any) -> tuple[str, str]:
        """A job whose submit is under way; its id and its callback token."""
        job = new_job(self.database, provider=provider, **columns)
        with self.database.read() as tx:
            return str(job["id"]), str(get_attempt(tx, job["id"], 1)["token"])


def acceptance(run: str, at: datetime) -> Any:
    """The submit answer that names a run."""
    from jobs.core.observations import Observation, Source

    return Observation(source=Source.SUBMIT, at=at, attempt=1, provider_job_id=run)


def says(status: str, *, job: str = "p-123", **fields: Any) -> dict[str, Any]:
    """An event in the simulator's dialect."""
    return {"id": "evt_1", "job": job, "status": status, **fields}


def an_app(runtime: Runtime, intake: Intake, *, door: str) -> Any:
    app = APIFlask(__name__, json_errors=False)
    app.extensions[EXTENSION] = runtime
    app.extensions[api.INTAKE] = intake
    register_problems(app)
    app.register_blueprint(receiving_blueprint(intake.receiver))
    app.register_blueprint(api.blueprint)
    app.register_blueprint(recheck_api.blueprint)
    return wrap(app.wsgi_app, intake.receiver) if door == "hot" else app.wsgi_app


def a_world(
    database: Database,
    clock: FakeClock,
    *,
    door: str = "hot",
    environ: Any = None,
    more: Sequence[ProviderEntry] = (),
    handlers: tuple[Handler, ...] = (),
) -> World:
    broker = RecordingBroker()
    entries = {name: an_entry(name, scheme, clock) for name, scheme in SCHEMES.items()}
    entries["silent"] = an_entry("silent", "standard-webhooks", clock, secrets=())
    entries |= {entry.name: entry for entry in more}
    runtime = a_runtime(database, broker=broker, handlers=handlers, providers=entries, environ=environ)
    intake = build_intake(runtime)
    return World(runtime, clock, broker, intake, an_app(runtime, intake, door=door))
