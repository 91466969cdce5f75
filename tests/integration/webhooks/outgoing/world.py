"""What the tests of deliveries share: events, endpoints, workers, and receivers that say what they are told to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from jobs.broker import DELIVER, DISPATCH
from jobs.clock import FakeClock
from jobs.core import instants
from jobs.core.events import EventType
from jobs.net.guard import Guard
from jobs.services.job_events import append_job_event
from jobs.services.keys import Principal, Role
from jobs.services.relay import relay
from jobs.services.runtime import Runtime
from jobs.storage.database import Database
from jobs.storage.outbox import append_event
from jobs.storage.schema import outbox
from tests.factories import T, insert_test_job
from tests.fakes.broker import RecordingBroker
from tests.fakes.runtime import a_runtime
from webhooks.outgoing.attempt import Answered
from webhooks.outgoing.endpoints import NewEndpoint, create_endpoint
from webhooks.outgoing.fan_out import fan_out
from webhooks.outgoing.lanes import Claim
from webhooks.outgoing.rounds import deliver_all, look_for_work
from webhooks.outgoing.schema import deliveries, delivery_attempts, endpoints

ADMIN = Principal("acme", Role.ADMIN, "key_1")
OPERATOR = Principal("acme", Role.OPERATOR, "key_2")
STRANGER = Principal("globex", Role.ADMIN, "key_3")
OK = Answered(200)
DOWN = Answered(None, "not_sent", "connection refused")


@dataclass(frozen=True)
class Sent:
    """One request, as its receiver saw it."""

    at: datetime
    url: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def event(self) -> str:
        return str(json.loads(self.body)["id"])


@dataclass
class World:
    """A fleet of one worker."""

    runtime: Runtime
    broker: RecordingBroker
    clock: FakeClock
    answers: dict[str, Callable[[Sent], Answered]] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)

    @classmethod
    def over(cls, database: Database, clock: FakeClock, *, data_dir: Path) -> World:
        broker = RecordingBroker()
        runtime = a_runtime(database, broker=broker, environ={"HOMING_DATA_DIR": str(data_dir)})
        runtime.guard = Guard(lifted=True)
        runtime.fan_outs = (fan_out,)
        return cls(runtime, broker, clock)

    @property
    def database(self) -> Database:
        return self.runtime.database

    def endpoint(
        self, url: str = "http://127.0.0.1:1/a", *events: str, by: Principal = OPERATOR, **more: Any
    ) -> dict[str, Any]:
        return create_endpoint(self.runtime, by, NewEndpoint(url, events or ("job.*",), **more))

    def event(self, event_type: EventType = EventType.JOB_SUCCEEDED, *, tenant: str = "acme") -> str:
        """Something happens to a job of its own."""
        with self.database.write() as tx:
            return append_job_event(tx, event_type, insert_test_job(tx, tenant=tenant, event_count=1))

    def whole_job(self) -> list[str]:
        """The events of one job, from its first to its last."""
        types = (EventType.JOB_CREATED, EventType.JOB_SUBMITTED, EventType.JOB_STARTED, EventType.JOB_SUCCEEDED)
        with self.database.write() as tx:
            job = insert_test_job(tx, event_count=1)
            return [append_job_event(tx, each, {**job, "event_count": place + 1}) for place, each in enumerate(types)]

    def silence(self) -> str:
        """An event of the fleet, which belongs to no tenant."""
        silent = {"name": "sweep.polls", "period_s": 1.0, "last_beat_at": instants.to_text(T), "silent_s": 20.0}
        with self.database.write() as tx:
            return append_event(tx, EventType.HEARTBEAT_MISSED, tenant=None, data={"heartbeat": silent})

    def events(self, count: int) -> list[str]:
        return [self.event() for _ in range(count)]

    def relay(self) -> None:
        relay(self.runtime)

    def receives(self, url: str, answer: Answered | Callable[[Sent], Answered]) -> None:
        self.answers[url] = answer if callable(answer) else lambda _sent: answer

    def send(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answered:
        """The stand-in for the network: 200, unless told otherwise."""
        sent = Sent(self.clock.now(), url, dict(headers), body)
        self.sent.append(sent)
        return self.answers.get(url, lambda _sent: OK)(sent)

    def look(self) -> int:
        """What the sweep does."""
        return look_for_work(self.runtime)

    def messages(self) -> list[list[Claim]]:
        """The messages that wait for a worker; they are gone from the queue then."""
        self.broker.take(DISPATCH)
        return [[Claim(*text.split(":")) for text in message] for message in self.broker.take(DELIVER)]

    def work(self) -> None:
        """A worker takes every message there is, one after another."""
        for claims in self.messages():
            for claim in claims:
                deliver_all(self.runtime, [claim], send=self.send)

    def run(self, *, rounds: int = 500) -> None:
        """Relays, looks and works until nothing is due within a moment."""
        self.relay()
        for _ in range(rounds):
            self.look()
            self.work()
            soon = self.clock.now() + timedelta(milliseconds=500)
            due = [row[name] for row in self.rows(endpoints) for name in ("next_send_at", "recover_next_at")]
            if not any(at is not None and at < soon for at in due):
                return
            self.clock.advance(0.02)

    def rows(self, table: sa.Table = deliveries) -> list[dict[str, Any]]:
        with self.database.read() as tx:
            return tx.rows(sa.select(table).order_by(*table.primary_key.columns))

    def row(self) -> dict[str, Any]:
        (row,) = self.rows()
        return row

    def lane(self, endpoint: Mapping[str, Any]) -> dict[str, Any]:
        return next(row for row in self.rows(endpoints) if row["id"] == endpoint["id"])

    def log(self) -> list[dict[str, Any]]:
        return self.rows(delivery_attempts)

    def told(self) -> list[str]:
        """Types of every event that was written."""
        return [row["type"] for row in self.rows(outbox)]
