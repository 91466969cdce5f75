"""Relay, workers and people at the same endpoint at once, on the real locks of each database."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.integration.webhooks.outgoing.world import OPERATOR, World
from webhooks.outgoing.deliveries import send_test
from webhooks.outgoing.rounds import deliver_all, look_for_work


def test_everybody_at_once_loses_nothing_and_locks_nobody_out(world: World) -> None:
    endpoints = [world.endpoint(f"http://127.0.0.1:1/{number}", rate_per_s=1000.0) for number in range(3)]
    events = world.events(20)
    faults: list[BaseException] = []

    def relays() -> None:
        for _ in range(10):
            world.relay()

    def tests() -> None:
        for number in range(10):
            send_test(world.runtime, OPERATOR, endpoints[number % 3]["id"])

    def works() -> None:
        for _ in range(15):
            look_for_work(world.runtime)
            for claims in world.messages():
                deliver_all(world.runtime, claims, send=world.send)

    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as fault:  # noqa: BLE001 - told below, whatever it is
            faults.append(fault)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in (relays, relays, tests, works, works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []

    world.clock.advance(31)
    world.run()

    assert {row["state"] for row in world.rows()} == {"succeeded"}
    assert len(world.rows()) == 3 * 20 + 10
    assert {sent.event for sent in world.sent} >= set(events)
