"""Relay, workers and people at the same endpoint at once, on the real locks of each database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from jobs.storage.database import Transaction
from tests.integration.webhooks.outgoing.world import OPERATOR, World
from webhooks.outgoing import fan_out
from webhooks.outgoing.attempt import Answered
from webhooks.outgoing.deliveries import send_test
from webhooks.outgoing.endpoints import delete_endpoint, disable_endpoint
from webhooks.outgoing.lanes import Lane, lock_lane, lock_lanes
from webhooks.outgoing.rounds import deliver_all, look_for_work
from webhooks.outgoing.schema import endpoints


def relay_often(world: World) -> None:
    for _ in range(10):
        world.relay()


def press_test_often(world: World) -> None:
    made = [row["id"] for row in world.rows(endpoints)]
    for number in range(10):
        send_test(world.runtime, OPERATOR, made[number % 3])


def work_often(world: World) -> None:
    for _ in range(15):
        look_for_work(world.runtime)
        for claims in world.messages():
            deliver_all(world.runtime, claims, send=world.send)


def all_at_once(jobs: Sequence[Callable[[World], None]], world: World) -> list[BaseException]:
    """What went wrong in any of them."""
    with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        running = [pool.submit(job, world) for job in jobs]
    return [fault for fault in (each.exception() for each in running) if fault is not None]


def test_everybody_at_once_loses_nothing_and_locks_nobody_out(world: World) -> None:
    for number in range(3):
        world.endpoint(f"http://127.0.0.1:1/{number}", rate_per_s=1000.0)
    events = world.events(20)

    faults = all_at_once([relay_often, relay_often, press_test_often, work_often, work_often], world)
    world.clock.advance(31)
    world.run()

    assert faults == []
    assert {row["state"] for row in world.rows()} == {"succeeded"}
    assert len(world.rows()) == 3 * 20 + 10
    assert {sent.event for sent in world.sent} >= set(events)


def test_a_try_begins_while_its_lane_is_held_and_ends_in_its_turn(world: World) -> None:
    """The lane's lock is what bounds an endpoint's deliveries a second: a try needs it once, at its end."""
    if world.database.is_sqlite:
        pytest.skip("SQLite has one lock, for every writer")
    lane = world.endpoint("http://127.0.0.1:1/0")
    world.event()
    world.relay()
    world.look()
    (claims,) = world.messages()
    is_sent = threading.Event()

    def send(_url: str, **_: object) -> Answered:
        is_sent.set()
        return Answered(200)

    with ThreadPoolExecutor(max_workers=1) as pool:
        with world.database.write() as tx:
            lock_lane(tx, lane["id"])
            under_way = pool.submit(deliver_all, world.runtime, claims, send=send)
            assert is_sent.wait(10)
            assert world.row()["state"] == "pending"
        under_way.result(timeout=20)
    assert world.row()["state"] == "succeeded"


@pytest.mark.parametrize(("end", "state"), [(disable_endpoint, "held"), (delete_endpoint, "dropped")])
def test_what_is_relayed_while_its_endpoint_ends_is_not_left_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch, end: Callable[..., object], state: str
) -> None:
    """Whoever ends it sees no delivery that is not committed yet, and does not wait for the relay."""
    if world.database.is_sqlite:
        pytest.skip("SQLite has one lock, for every writer")
    lane = world.endpoint("http://127.0.0.1:1/0")
    world.event()

    def end_it_first(tx: Transaction, endpoint_ids: Collection[str]) -> list[Lane]:
        with ThreadPoolExecutor(max_workers=1) as pool:
            pool.submit(end, world.runtime, OPERATOR, lane["id"]).result(timeout=10)
        return lock_lanes(tx, endpoint_ids)

    monkeypatch.setattr(fan_out, "lock_lanes", end_it_first)
    world.relay()

    assert world.row()["state"] == state
    assert world.lane(lane)["next_send_at"] is None


def test_an_endpoint_disabled_during_a_try_holds_its_delivery(world: World) -> None:
    """Nothing keeps the two apart but the delivery's own row: whoever writes it second finds it changed."""
    lane = world.endpoint("http://127.0.0.1:1/0")
    world.event()
    world.relay()
    world.look()
    (claims,) = world.messages()

    def send(_url: str, **_: object) -> Answered:
        disable_endpoint(world.runtime, OPERATOR, lane["id"])
        return Answered(200)

    deliver_all(world.runtime, claims, send=send)

    assert world.row()["state"] == "held"
    assert [line["status"] for line in world.log()] == [200]
