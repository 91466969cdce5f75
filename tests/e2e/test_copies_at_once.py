"""The same signed event many times at once, through two web processes: one row, one transition, one effect."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection

import pytest

from jobs.clock import FakeClock
from jobs.core.signatures import sign
from jobs.storage.database import Database
from tests.integration.webhooks.incoming.world import World, a_world, says
from tests.vectors import NOW, WHSEC_SECRET

COPIES = 20
ROUNDS = 50


@pytest.fixture
def ports(database_url: str) -> Iterator[list[int]]:
    """Two web processes over one database."""
    command = [sys.executable, "-m", "tests.e2e.webhook_server", database_url]
    with ExitStack() as stack:
        found = []
        for _ in range(2):
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            assert process.stdout is not None
            found.append(int(process.stdout.readline()))
        yield found


@pytest.fixture
def world(database: Database, clock: FakeClock) -> World:
    """The test's own look at the database, and the worker."""
    return a_world(database, clock)


def send_at_once(ports: list[int], body: bytes, *, delivery_id: str) -> list[dict[str, str]]:
    """Releases all copies through a barrier; returns the acknowledgements."""
    headers = sign("standard-webhooks", secret=WHSEC_SECRET, body=body, delivery_id=delivery_id, at=NOW)
    barrier = threading.Barrier(COPIES)
    replies: list[tuple[int, bytes]] = []

    def send(port: int) -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        connection.connect()
        barrier.wait()
        connection.request("POST", "/webhooks/renders/", body, headers)
        answer = connection.getresponse()
        replies.append((answer.status, answer.read()))
        connection.close()

    threads = [threading.Thread(target=send, args=(ports[number % 2],)) for number in range(COPIES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [status for status, _ in replies] == [200] * COPIES
    return [json.loads(content) for _, content in replies]


def test_twenty_copies_at_once_are_one_row_one_transition_and_one_effect(ports: list[int], world: World) -> None:
    """F10, fifty times."""
    jobs = [world.submitted_job(f"p-{number}")[0] for number in range(ROUNDS)]

    for number in range(ROUNDS):
        body = json.dumps(says("succeeded", job=f"p-{number}")).encode()
        answers = send_at_once(ports, body, delivery_id=f"msg_{number}")
        assert sorted(answer["status"] for answer in answers) == ["accepted"] + ["duplicate"] * (COPIES - 1)
        assert len({answer["event"] for answer in answers}) == 1
    world.drain()

    assert len(world.events()) == ROUNDS
    for job_id in jobs:
        assert world.history(job_id) == [("pending", "succeeded", True)]
        assert world.told(job_id) == ["job.submitted", "job.succeeded"]
