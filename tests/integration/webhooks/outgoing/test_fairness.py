"""Endpoints do not wait for each other, and a row that cannot be sent holds nobody up."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import sqlalchemy as sa

from jobs.clock import FakeClock
from jobs.core.events import EventType
from jobs.storage.outbox import event_row
from jobs.storage.schema import outbox
from tests.integration.webhooks.outgoing.world import DOWN, OK, Sent, World
from webhooks.outgoing.attempt import Answered
from webhooks.outgoing.fan_out import new_delivery
from webhooks.outgoing.lanes import FAILING_SLOTS, wake
from webhooks.outgoing.schema import deliveries, event_bodies

SECOND = timedelta(seconds=1)


def pile_up(world: World, endpoint: dict[str, object], count: int) -> None:
    """Many deliveries that are due, without the relay's work for each."""
    lane = world.lane(endpoint)
    with world.database.write() as tx:
        event = {"id": "evt_many", "type": "job.failed", "job_id": None, "occurred_at": tx.now}
        each = [{**event, "id": f"evt_many{number:05}"} for number in range(count)]
        tx.execute(sa.insert(event_bodies), [{"event_id": one["id"], "body": b"{}"} for one in each])
        tx.execute(sa.insert(deliveries), [new_delivery(tx, lane, one, None) for one in each])
        wake(tx, [str(endpoint["id"])])


def tick(world: World) -> None:
    """A second passes: the sweep looks, and a worker takes the messages one after another."""
    world.clock.advance(1)
    world.relay()
    world.look()
    world.work()


def test_ten_thousand_pending_at_a_dead_endpoint_delay_a_healthy_one_by_less_than_five_seconds(
    world: World, clock: FakeClock
) -> None:
    """F50: each try at the dead one takes all the time there is, and the worker has one pair of hands."""
    dead = world.endpoint("http://127.0.0.1:1/dead", "job.failed")
    healthy = world.endpoint("http://127.0.0.1:1/healthy", "job.succeeded")

    def hangs(_sent: Sent) -> Answered:
        hung.append(clock.now())
        return Answered(None, "no_answer")

    hung: list[object] = []
    world.receives(dead["url"], hangs)
    pile_up(world, dead, 10_000)
    tick(world)
    written = {}
    for _ in range(20):
        written[world.event()] = clock.now()
        tick(world)

    arrived = {sent.event: sent.at for sent in world.sent if sent.url == healthy["url"]}
    assert set(arrived) == set(written)
    assert max(arrived[event] - written[event] for event in written) < 5 * SECOND
    assert len(hung) <= 4 + 20 * 10


def test_what_is_claimed_for_a_failing_endpoint_is_one_at_a_time(world: World) -> None:
    dead = world.endpoint()
    world.receives(dead["url"], DOWN)
    pile_up(world, dead, 100)
    tick(world)

    world.clock.advance(1)
    world.look()

    assert [len(message) for message in world.messages()] == [1]


def test_endpoints_that_fail_share_a_few_slots_of_the_fleet(world: World) -> None:
    many = [world.endpoint(f"http://127.0.0.1:1/{number}") for number in range(20)]
    for endpoint in many:
        world.receives(endpoint["url"], DOWN)
    for _ in range(2):
        world.event()
    tick(world)
    world.clock.advance(600)

    world.look()

    assert sum(map(len, world.messages())) == FAILING_SLOTS


def test_an_endpoint_that_is_well_again_gets_everything_soon(world: World, clock: FakeClock) -> None:
    endpoint = world.endpoint()
    world.receives(endpoint["url"], DOWN)
    events = world.events(40)
    for _ in range(60):
        tick(world)
    world.receives(endpoint["url"], OK)

    clock.advance(500)
    world.run()

    assert {row["state"] for row in world.rows()} == {"succeeded"}
    assert {sent.event for sent in world.sent} == set(events)


def test_retries_of_a_thousand_that_failed_together_are_spread(world: World) -> None:
    """F50: no second holds more than a twentieth of them."""
    endpoint = world.endpoint(concurrency=50, rate_per_s=1000.0)
    world.receives(endpoint["url"], DOWN)
    pile_up(world, endpoint, 300)
    for _ in range(100):
        world.clock.advance(0.1)
        world.look()
        world.work()

    retries = Counter(int(sent.at.timestamp()) for sent in world.sent[50:])
    assert max(retries.values()) <= 15


def test_an_endpoints_rate_is_kept(world: World, clock: FakeClock) -> None:
    endpoint = world.endpoint(rate_per_s=2.0, concurrency=10)
    pile_up(world, endpoint, 30)
    began = clock.now()

    for _ in range(10):
        tick(world)

    span_s = (clock.now() - began).total_seconds()
    assert len(world.sent) <= 10 + 2 * span_s


def test_a_poisoned_row_and_a_broken_endpoint_hold_nobody_up(world: World) -> None:
    """F67: the first row cannot be read, the second goes to an endpoint that answers 500."""
    broken = world.endpoint("http://127.0.0.1:1/broken", "job.failed")
    world.endpoint("http://127.0.0.1:1/well", "job.succeeded")
    world.receives(broken["url"], Answered(500, "status_500"))
    with world.database.write() as tx:
        poisoned = event_row(EventType.JOB_SUCCEEDED, tenant="acme", at=tx.now, data={"job": {}})
        tx.execute(sa.insert(outbox), [{**poisoned, "data": {"number": float("nan")}} if tx.is_sqlite else poisoned])
    world.event(EventType.JOB_FAILED)
    events = world.events(100)

    world.run()

    arrived = {sent.event for sent in world.sent if sent.url.endswith("well")}
    assert set(events) <= arrived
    assert [sent.url for sent in world.sent].count(broken["url"]) == 1
