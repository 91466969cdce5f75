"""Relay, workers and people at the same endpoint at once, on the real locks of each database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.integration.webhooks.outgoing.world import OPERATOR, World
from webhooks.outgoing.deliveries import send_test
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
