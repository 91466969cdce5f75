"""The bell on a real Redis: once per burst, and nobody waits for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from jobs.broker import DRAIN
from jobs.clock import FakeClock, SystemClock
from jobs.storage.database import Database
from tests.fakes.broker import RecordingBroker
from tests.integration.webhooks.incoming.world import World, a_world, an_app, says
from tests.services.redis import RedisService
from webhooks.incoming.applying.drain import drain, sweep_inbox
from webhooks.incoming.bell import FLAG, Bell, RingFlag
from webhooks.incoming.installation import build_intake


def client_of(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=0.5, socket_connect_timeout=0.5, retry=Retry(NoBackoff(), 0))


@pytest.fixture
def ringing(world: World, redis_url: str) -> Iterator[World]:
    """A world whose bell has a real Redis."""
    with client_of(redis_url) as client:
        yield with_redis(world, client)


def with_redis(world: World, client: redis.Redis) -> World:
    world.runtime.redis = client
    world.intake = build_intake(world.runtime)
    world.app = an_app(world.runtime, world.intake, door="hot")
    return world


def test_a_burst_rings_once_and_the_drain_lets_it_ring_again(ringing: World) -> None:
    for number in range(5):
        ringing.deliver(says("queued", job=f"p-{number}"), delivery_id=f"m{number}")
    ringing.intake.stop()
    rings = ringing.broker.take(DRAIN)

    drain(ringing.runtime)
    ringing.deliver(says("queued", job="p-9"), delivery_id="m9")
    ringing.intake.stop()

    assert (len(rings), len(ringing.broker.take(DRAIN))) == (1, 1)


def test_repeats_and_what_needs_no_worker_do_not_ring(ringing: World) -> None:
    ringing.deliver(b"{")
    ringing.deliver(b"{")
    ringing.deliver({"id": "evt_1", "type": "billing.balance.updated"}, delivery_id="m2")
    ringing.intake.stop()

    assert ringing.broker.take(DRAIN) == []


def test_the_flag_ends_by_itself(redis_url: str) -> None:
    with client_of(redis_url) as client:
        RingFlag(client).put_up()

        assert 0 < client.ttl(FLAG) <= 5


def test_a_message_that_cannot_be_sent_takes_the_flag_down_again(redis_url: str, clock: FakeClock) -> None:
    broker = RecordingBroker(reachable=False)
    with client_of(redis_url) as client:
        bell = Bell(RingFlag(client), broker, monotonic=clock.monotonic)

        assert bell.ring_now() is False
        assert client.exists(FLAG) == 0


def test_the_flag_is_down_before_the_drain_looks(ringing: World) -> None:
    """Whatever is committed while a drain is at work rings anew."""
    assert ringing.runtime.redis is not None
    ringing.deliver(says("queued"))
    ringing.intake.stop()
    seen: list[int] = []
    whole = ringing.database.write

    def write() -> object:
        assert ringing.runtime.redis is not None
        seen.append(int(ringing.runtime.redis.exists(FLAG)))  # type: ignore[arg-type]
        return whole()

    ringing.database.write = write  # type: ignore[method-assign,assignment]
    drain(ringing.runtime)

    assert set(seen) == {0}


def test_twenty_webhooks_while_redis_is_down_are_acknowledged_at_once_and_applied(
    database: Database, clock: FakeClock, tmp_path: Path
) -> None:
    """F60 (c)."""
    service = RedisService.start_in(tmp_path)
    with client_of(service.url) as client:
        world = with_redis(a_world(database, clock), client)
        jobs = [world.submitted_job(f"p-{number}")[0] for number in range(20)]
        service.kill()
        took_s = deliver_all(world)

    while sweep_inbox(world.runtime):
        pass

    assert max(took_s) < 1
    assert {world.job(job_id)["state"] for job_id in jobs} == {"succeeded"}
    world.intake.stop()


def test_a_frozen_redis_stalls_nobody(database: Database, clock: FakeClock, tmp_path: Path) -> None:
    """It takes connections and never answers; only the bell's own thread waits, and then it rests."""
    service = RedisService.start_in(tmp_path)
    assert service.process is not None
    with client_of(service.url) as client:
        world = with_redis(a_world(database, clock), client)
        os.kill(service.process.pid, signal.SIGSTOP)
        took_s = deliver_all(world)
        world.intake.stop()
        os.kill(service.process.pid, signal.SIGCONT)
    service.kill()

    assert max(took_s) < 0.5
    assert world.broker.take(DRAIN) == []
    assert len(world.events()) == 20


def deliver_all(world: World) -> list[float]:
    """Twenty events; seconds each took."""
    stopwatch, took_s = SystemClock(), []
    for number in range(20):
        began = stopwatch.monotonic()
        reply = world.deliver(says("succeeded", job=f"p-{number}"), delivery_id=f"m{number}")
        took_s.append(stopwatch.monotonic() - began)
        assert reply.said == "accepted"
    return took_s
