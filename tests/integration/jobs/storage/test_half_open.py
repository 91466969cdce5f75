"""Half-open sockets to PostgreSQL: packets are dropped on their way, and nobody is told that a connection has ended."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa

from homing.up.ports import free_port
from homing.web import create_app
from jobs.core.errors import Unavailable
from jobs.core.events import EventType
from jobs.core.signatures import sign
from jobs.services.keys import Role, create_key
from jobs.services.relay import relay
from jobs.services.runtime import Runtime
from jobs.storage import database as storage
from jobs.storage.database import Database
from jobs.storage.jobs import lock_job
from jobs.storage.outbox import append_event
from jobs.storage.schema import outbox
from tests.crashing.wire import Mode, Wire
from tests.factories import new_job
from tests.fakes.runtime import a_runtime
from tests.integration.webhooks.incoming.world import SECRETS, Reply, an_entry, call
from tests.services.postgresql import PostgresService
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.timeout(120)]
_ANSWER_S = 1.0
# The wait for an answer, half a second in which the server should have spoken, and two to connect anew.
_BOUND_S = _ANSWER_S + 0.5 + 2.0 + 1.5
_IDLE_S = 2.0
_SCHEME = "standard-webhooks"


@pytest.fixture
def direct(server: PostgresService) -> Iterator[Database]:
    """Past the wire."""
    database = Database.connect(server.url("homing"))
    yield database
    database.close()


@dataclass
class Far:
    """A database behind a wire."""

    wire: Wire
    database: Database

    def lose_packets(self) -> None:
        self.wire.set(Mode.SWALLOWING)

    def deliver_packets(self) -> None:
        """What was lost stays lost, and the connections that lost it are never told."""
        self.wire.set(Mode.GOOD)


@pytest.fixture
def far(server: PostgresService, monkeypatch: pytest.MonkeyPatch) -> Iterator[Far]:
    monkeypatch.setattr(storage, "_IDLE_TIMEOUT_S", _IDLE_S)
    wire = Wire(listen=free_port(), target=server.port)
    url = server.url("homing").replace(f":{server.port}/", f":{wire.port}/")
    made = Far(wire, Database.connect(url, answer_timeout_s=_ANSWER_S))
    yield made
    made.database.close()
    wire.close()


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.monotonic()
    return work(), time.monotonic() - begun


@dataclass
class Site:
    """The web process over the far database."""

    app: Any
    runtime: Runtime
    key: str

    def list_jobs(self) -> Reply:
        return call(self.app, "/v1/jobs", method="GET", headers={"Authorization": f"Bearer {self.key}"})

    def deliver(self, number: int) -> Reply:
        body = json.dumps({"id": f"evt_{number}", "job": "p-1", "status": "succeeded"}).encode()
        at = self.runtime.clock.now()
        headers: Mapping[str, str] = sign(
            _SCHEME, secret=SECRETS[_SCHEME], body=body, delivery_id=f"msg_{number}", at=at
        )
        return call(self.app, "/webhooks/renders", body=body, headers=headers)


@pytest.fixture
def site(far: Far) -> Iterator[Site]:
    clock: Any = far.database.clock
    runtime = a_runtime(
        far.database,
        providers={"renders": an_entry("renders", _SCHEME, clock)},
        environ={"HOMING_REDIS_URL": "redis://127.0.0.1:1/0"},
    )
    app = create_app(runtime)
    yield Site(app.wsgi_app, runtime, create_key(far.database, role=Role.ADMIN).key)
    app.extensions["homing.intake"].stop()


def test_the_api_and_the_webhook_door_answer_in_time_and_no_thread_is_lost(far: Far, site: Site) -> None:
    """Whoever asks is told "not now": a client within seconds, a provider's webhook within two."""
    assert (site.list_jobs().status, site.deliver(1).status) == (200, 200)
    threads = threading.active_count()

    far.lose_packets()
    hook, hook_s = _timed(lambda: site.deliver(2))
    page, page_s = _timed(site.list_jobs)
    again, again_s = _timed(lambda: site.deliver(2))

    assert (hook.status, page.status, again.status) == (503, 503, 503)
    assert all(int(reply.headers["Retry-After"]) >= 1 for reply in (hook, page, again))
    assert max(hook_s, again_s) < 2.0
    assert page_s < _BOUND_S
    far.deliver_packets()
    wait_until(lambda: site.list_jobs().status == 200, within_s=10, what="the API")
    wait_until(lambda: site.deliver(2).status == 200, within_s=10, what="the door")
    wait_until(lambda: threading.active_count() <= threads, within_s=10, what="the threads")


def test_a_worker_goes_on_as_soon_as_packets_arrive_again(far: Far, direct: Database) -> None:
    runtime = a_runtime(far.database)

    def announce() -> str:
        with direct.write() as tx:
            return append_event(tx, EventType.HEARTBEAT_RECOVERED, tenant=None, data={"heartbeat": {"name": "test"}})

    announce()
    relay(runtime)
    event_id = announce()
    far.lose_packets()

    def fails() -> None:
        with pytest.raises(Unavailable):
            relay(runtime)

    _, waited_s = _timed(fails)
    far.deliver_packets()
    wait_until(lambda: _relays(runtime), within_s=10, what="the relay")

    assert waited_s < _BOUND_S
    with direct.read() as tx:
        assert tx.row(sa.select(outbox.c.relayed_at).where(outbox.c.id == event_id))["relayed_at"] is not None  # type: ignore[index]


def _relays(runtime: Runtime) -> bool:
    try:
        relay(runtime)
    except Unavailable:
        return False
    return True


def test_what_a_session_had_locked_that_nobody_can_reach_any_more_is_free_within_its_time(
    far: Far, direct: Database
) -> None:
    """Its server waits for the next statement, which was lost; by itself for as long as TCP hopes, two hours."""
    job_id = new_job(direct)["id"]

    def be_cut_off_in_the_middle() -> None:
        with far.database.write() as tx:
            lock_job(tx, job_id)
            far.lose_packets()
            tx.execute(sa.select(sa.literal(1)))

    with pytest.raises(Unavailable):
        be_cut_off_in_the_middle()
    far.deliver_packets()

    def lock() -> None:
        with direct.write() as tx:
            lock_job(tx, job_id)

    _, waited_s = _timed(lock)
    assert waited_s < _IDLE_S + 1.5


def test_whoever_was_away_for_longer_than_its_transaction_may_wait_is_told_that_it_is_over(
    far: Far, direct: Database
) -> None:
    """A process that was stopped in the middle: its session is gone, which is no fault of its statement."""

    def sessions() -> int:
        idle = sa.text("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'")
        with direct.read() as tx:
            return int(tx.execute(idle).scalar_one())

    def be_away() -> None:
        with far.database.write() as tx:
            tx.execute(sa.select(sa.literal(1)))
            wait_until(lambda: sessions() == 0, within_s=_IDLE_S + 5, what="the end of the session")
            tx.execute(sa.select(sa.literal(1)))

    with pytest.raises(Unavailable):
        be_away()

    with far.database.read() as tx:
        assert tx.execute(sa.select(sa.literal(7))).scalar_one() == 7
