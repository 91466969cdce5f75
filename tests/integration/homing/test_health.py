from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from homing.health.fleet import FleetHealth, examine
from homing.health.readiness import Readiness
from homing.web import create_app
from jobs.clock import FakeClock
from jobs.storage.accounts import lock_account, update_account
from jobs.storage.database import Database
from jobs.storage.output import arm_stream, take_stream
from jobs.storage.schema import counters
from reconciler.heartbeats import beat
from reconciler.schedule import expected_heartbeats
from tests.factories import T, new_job
from tests.fakes.runtime import a_runtime
from tests.services.waiting import wait_until
from webhooks.outgoing.schema import endpoints

NOBODY = {"HOMING_REDIS_URL": "redis://127.0.0.1:1/0"}


@pytest.fixture
def client(database: Database) -> FlaskClient:
    """A web process whose Redis is away."""
    return create_app(a_runtime(database, environ=NOBODY)).test_client()


@contextmanager
def held_writer_lock(database: Database) -> Iterator[None]:
    """Somebody writes, and does not come to an end."""
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with database.write() as tx:
            tx.execute(sa.select(sa.literal(1)))
            holding.set()
            done.wait(30)

    writer = threading.Thread(target=hold)
    writer.start()
    assert holding.wait(10)
    try:
        yield
    finally:
        done.set()
        writer.join(10)


def beat_all(database: Database) -> None:
    with database.write() as tx:
        beat(tx, expected_heartbeats())


def look(database: Database, *, redis_fault: str | None = None) -> FleetHealth:
    return examine(database, redis_fault=lambda: redis_fault)


def test_a_process_that_lives_says_so(client: FlaskClient) -> None:
    assert client.get("/healthz").json == {"status": "ok"}


def test_a_process_that_can_commit_is_ready_without_redis_or_beat(client: FlaskClient, database: Database) -> None:
    assert client.get("/readyz").status_code == 200
    with database.read() as tx:
        assert tx.row(sa.select(counters.c.value).where(counters.c.name == "readiness_checks")) == {"value": 1}


def test_a_schema_newer_than_this_release_is_ready(database: Database) -> None:
    """During an upgrade the old processes go on working until the new ones have taken over."""
    with database.write() as tx:
        tx.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))

    assert Readiness(database).fault() is None


def test_a_database_without_its_schema_is_not_ready(tmp_path: Path) -> None:
    database = Database.connect(f"sqlite:///{tmp_path / 'empty.db'}")

    answer = create_app(a_runtime(database, environ=NOBODY)).test_client().get("/readyz")

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "2"
    assert "homing migrate" in answer.json["detail"]
    database.close()


def test_a_write_lock_that_cannot_be_had_is_not_ready(sqlite_url: str) -> None:
    database = Database.connect(sqlite_url, write_timeout_s=0.1)

    with held_writer_lock(database):
        fault = Readiness(database).fault()

    assert "write lock" in (fault or "")
    assert Readiness(database).fault() is None
    database.close()


def test_whoever_asks_a_frozen_database_waits_no_longer_than_its_patience(sqlite_url: str) -> None:
    database = Database.connect(sqlite_url, write_timeout_s=20)
    readiness = Readiness(database, patience=timedelta(milliseconds=50))

    with held_writer_lock(database):
        faults = [readiness.fault(), readiness.fault()]
        tries = [thread for thread in threading.enumerate() if thread.name == "readiness"]

    assert faults == ["the database did not answer within 0.05 s"] * 2
    assert len(tries) == 1
    for stuck in tries:
        stuck.join(10)
    # A good try may take longer than its patience on a busy machine; the one who asks next shares its answer.
    wait_until(lambda: readiness.fault() is None, within_s=10, what="the process ready again")
    database.close()


def test_a_fleet_that_works_is_well(database: Database) -> None:
    beat_all(database)

    health = look(database)

    assert health.reasons == []
    assert health.document["status"] == "ok"
    assert health.workers["events"] == 0
    assert health.sweeps["polls"] == 0


def test_a_fleet_that_never_began_is_named_part_by_part(database: Database) -> None:
    health = look(database)

    assert len(health.reasons) == len(expected_heartbeats())
    assert any("queue submit yet" in reason for reason in health.reasons)
    assert any("sweep polls has not come to its end yet" in reason for reason in health.reasons)


def test_a_part_that_went_quiet_is_named_with_its_silence(database: Database, clock: FakeClock) -> None:
    beat_all(database)
    clock.advance(20)
    with database.write() as tx:
        beat(tx, {name: period for name, period in expected_heartbeats().items() if name != "sweep.polls"})

    assert look(database).reasons == [
        "sweep polls has not come to its end for 20s: is beat up, and the worker of queue reconcile?"
    ]


def test_redis_that_is_away_is_a_reason(database: Database) -> None:
    beat_all(database)

    health = look(database, redis_fault="refused")

    assert health.redis is False
    assert ["Redis does not answer (refused)" in reason for reason in health.reasons] == [True]


def test_output_that_nobody_listens_to_is_a_reason(database: Database, clock: FakeClock) -> None:
    job = new_job(database, next_submit_at=None)
    with database.write() as tx:
        arm_stream(tx, job_id=job["id"], provider=job["provider"], attempt=1)
    clock.advance(50)
    with database.write() as tx:
        take_stream(tx, job["id"], held=None, until=tx.now + timedelta(seconds=15))
    clock.advance(70)
    beat_all(database)
    soon = look(database)
    clock.advance(6)
    beat_all(database)

    assert soon.reasons == []
    assert look(database).reasons == ["the oldest of output to listen to has waited for 1m 1s"]


def test_work_that_nobody_begins_is_a_reason(database: Database, clock: FakeClock) -> None:
    new_job(database)
    clock.advance(61)
    beat_all(database)

    health = look(database)

    assert health.reasons == ["the oldest of due submits has waited for 1m 1s"]
    assert health.oldest["due submits"] == 61


def test_work_of_a_paused_provider_may_wait(database: Database, clock: FakeClock) -> None:
    new_job(database)
    with database.write() as tx:
        lock_account(tx, "renders")
        update_account(tx, "renders", paused_at=T)
    clock.advance(3600)
    beat_all(database)

    assert look(database).reasons == []


def test_the_route_answers_503_with_the_reasons(client: FlaskClient) -> None:
    answer = client.get("/fleetz")

    assert answer.status_code == 503
    assert answer.json["status"] == "degraded"
    assert answer.json["redis"] == {"reachable": False}
    assert any("Redis" in reason for reason in answer.json["reasons"])


def test_a_fleet_without_a_database_is_not_well_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "homing.db"
    folder.mkdir()  # a folder where the file should be: the database cannot be opened
    database = Database.connect(f"sqlite:///{folder}")

    reasons = look(database).reasons

    assert len(reasons) == 1
    assert "database is not available" in reasons[0]
    database.close()


def test_an_endpoint_that_nobody_sends_to_is_noticed(database: Database, clock: FakeClock) -> None:
    beat_all(database)
    due = {"state": "enabled", "next_send_at": clock.now() - timedelta(seconds=61)}
    with database.write() as tx:
        tx.execute(sa.insert(endpoints).values(_ENDPOINT | due))

    health = look(database)

    assert health.reasons == ["the oldest of deliveries to send has waited for 1m 1s"]


_ENDPOINT = {
    "id": "ep_1",
    "tenant": "acme",
    "kind": "subscribed",
    "url": "https://example.com/hooks",
    "events": ["*"],
    "sees_fleet": False,
    "rate_per_s": 10.0,
    "concurrency": 5,
    "secrets": [],
    "created_at": T,
    "updated_at": T,
}


def test_a_writer_that_is_stuck_is_named(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is stopped with the lock stops every other; somebody must know which."""
    database = Database.connect(sqlite_url)
    monkeypatch.setattr("homing.health.fleet.WRITER_STUCK", timedelta(0))
    beat_all(database)

    with held_writer_lock(database):
        reasons = look(database).reasons

    assert len(reasons) == 1
    assert f"process {os.getpid()} has held the database's write lock for" in reasons[0]
    assert look(database).reasons == []
    database.close()


def test_a_provider_that_is_away_is_a_reason_and_its_work_may_wait(database: Database, clock: FakeClock) -> None:
    new_job(database)
    with database.write() as tx:
        lock_account(tx, "renders")
        update_account(tx, "renders", outage_at=T, outage_reason="answered: HTTP 502", next_probe_at=T)
    clock.advance(3600)
    beat_all(database)

    health = look(database)

    assert health.reasons == ["provider renders has been away for 1h: answered: HTTP 502"]
    assert health.document["outages"] == {"renders": 3600.0}


def test_a_provider_that_is_away_is_no_reason_where_nobody_waits_for_it(database: Database, clock: FakeClock) -> None:
    """Nothing probes it, so it would be one until the next job comes; an entry that was removed, for ever."""
    new_job(database, state="succeeded", next_submit_at=None, finished_at=T)
    with database.write() as tx:
        lock_account(tx, "renders")
        update_account(tx, "renders", outage_at=T, outage_reason="answered: HTTP 502", next_probe_at=T)
    clock.advance(3600)
    beat_all(database)

    health = look(database)

    assert (health.reasons, health.document["outages"]) == ([], {})
