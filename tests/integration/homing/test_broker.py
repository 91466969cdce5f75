"""The bell against a real Redis: heard when it can be, and never waited for."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from homing.broker import CeleryBroker
from homing.celery_app import KEY_PREFIX
from homing.once import unmark
from homing.redis_urls import connect
from homing.up.redis_server import find_redis
from jobs.broker import DISPATCH, POLL, RELAY
from jobs.clock import FakeClock
from tests.services.redis import RedisService
from tests.services.waiting import wait_until

BOUND_S = 1.5


def heard(service: RedisService, queue: str) -> list[tuple[str, list[str]]]:
    """(task, arguments) of each message in a queue."""
    with service.client() as client:
        raw: Any = client.lrange(f"{KEY_PREFIX}{queue}", 0, -1)
    return [_read(json.loads(message)) for message in reversed(raw)]


def _read(message: dict[str, Any]) -> tuple[str, list[str]]:
    import base64

    args, _kwargs, _embed = json.loads(base64.b64decode(message["body"]))
    return message["headers"]["task"], args


def seconds_of(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


@pytest.fixture
def broker(redis_url: str) -> Iterator[CeleryBroker]:
    broker = CeleryBroker(redis_url)
    yield broker
    broker.close()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisService]:
    """A server to be hurt."""
    service = RedisService.start_in(tmp_path)
    yield service
    assert service.process is not None
    service.process.send_signal(signal.SIGCONT)
    service.kill()


def test_a_message_goes_to_its_tasks_queue_with_its_ids(broker: CeleryBroker, redis_service: RedisService) -> None:
    assert broker.publish(POLL, "job_1", "token")
    assert broker.publish(RELAY)

    assert heard(redis_service, "poll") == [(POLL, ["job_1", "token"])]
    assert heard(redis_service, "events") == [(RELAY, [])]


def test_of_bells_that_say_look_one_is_on_its_way(broker: CeleryBroker, redis_service: RedisService) -> None:
    """Each commit asks for a relay, and each relay takes all there is: a message for each would fill the queue."""
    assert [broker.publish(RELAY) for _ in range(5)] == [True] * 5
    assert heard(redis_service, "events") == [(RELAY, [])]

    with redis_service.client() as client:
        unmark(client, RELAY)  # a relay has begun to look
    assert [broker.publish(RELAY), broker.publish(DISPATCH)] == [True, True]

    assert heard(redis_service, "events") == [(RELAY, []), (RELAY, []), (DISPATCH, [])]


def test_a_bell_that_was_lost_is_rung_again_soon(broker: CeleryBroker, redis_service: RedisService) -> None:
    broker.publish(RELAY)

    with redis_service.client() as client:
        marks: Any = client.keys(f"{KEY_PREFIX}rung:*")
        left_ms = [client.pttl(mark) for mark in marks]

    assert len(left_ms) == 1
    assert all(isinstance(left, int) and 0 < left <= 5000 for left in left_ms)


def test_threads_share_a_bell(broker: CeleryBroker, redis_service: RedisService) -> None:
    def ring(number: int) -> None:
        for _ in range(10):
            assert broker.publish(POLL, f"job_{number}")

    threads = [threading.Thread(target=ring, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(heard(redis_service, "poll")) == 160


def _ring_in_child(broker: CeleryBroker) -> None:
    os._exit(0 if broker.publish(POLL, "job_of_the_child") else 1)


def test_a_bell_made_before_a_fork_rings_on_both_sides_of_it(broker: CeleryBroker, redis_service: RedisService) -> None:
    broker.publish(POLL, "job_before")

    child = multiprocessing.get_context("fork").Process(target=_ring_in_child, args=(broker,))
    child.start()
    broker.publish(POLL, "job_of_the_parent")
    child.join()

    assert child.exitcode == 0
    assert sorted(args[0] for _, args in heard(redis_service, "poll")) == [
        "job_before",
        "job_of_the_child",
        "job_of_the_parent",
    ]


def test_a_refused_connection_costs_next_to_nothing() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        broker = CeleryBroker(f"redis://127.0.0.1:{taken.getsockname()[1]}/0")

        took_s = [seconds_of(lambda: broker.publish(POLL, "job_1")) for _ in range(5)]

    assert max(took_s) < BOUND_S
    assert not broker.publish(POLL, "job_1")
    broker.close()


def test_a_frozen_redis_costs_the_first_callers_a_second_and_the_rest_nothing(own_redis: RedisService) -> None:
    broker = CeleryBroker(own_redis.url)
    assert broker.publish(POLL, "job_1")
    assert own_redis.process is not None
    own_redis.process.send_signal(signal.SIGSTOP)

    with capture_logs() as logs:
        took_s = [seconds_of(lambda: broker.publish(POLL, "job_1")) for _ in range(10)]

    assert max(took_s) < BOUND_S
    assert max(took_s[2:]) < 0.05
    assert [log["event"] for log in logs] == ["messages are held back"]
    broker.close()


def test_a_frozen_redis_that_nobody_had_spoken_to_is_no_worse(own_redis: RedisService) -> None:
    assert own_redis.process is not None
    own_redis.process.send_signal(signal.SIGSTOP)
    broker = CeleryBroker(own_redis.url)

    took_s = [seconds_of(lambda: broker.publish(POLL, "job_1")) for _ in range(3)]

    assert max(took_s) < BOUND_S
    broker.close()


def test_all_threads_of_a_web_process_at_once_are_bounded_too(own_redis: RedisService) -> None:
    broker = CeleryBroker(own_redis.url)
    broker.publish(POLL, "job_1")
    assert own_redis.process is not None
    own_redis.process.send_signal(signal.SIGSTOP)
    took_s: list[float] = []
    threads = [
        threading.Thread(target=lambda: took_s.append(seconds_of(lambda: broker.publish(POLL, "job_1"))))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(took_s) == 16
    assert max(took_s) < BOUND_S
    broker.close()


def test_when_redis_is_back_the_bell_is_heard_again(own_redis: RedisService, clock: FakeClock) -> None:
    broker = CeleryBroker(own_redis.url, monotonic=clock.monotonic)
    broker.publish(POLL, "job_1")
    own_redis.kill()
    assert [broker.publish(POLL, "job_2") for _ in range(3)] == [False] * 3
    own_redis.start()
    assert not broker.publish(POLL, "job_3"), "held back until the probe is due"

    clock.advance(5)

    assert broker.publish(POLL, "job_4")
    assert broker.publish(POLL, "job_5")
    broker.close()


def test_a_full_redis_refuses_quickly(own_redis: RedisService) -> None:
    broker = CeleryBroker(own_redis.url)
    assert broker.publish(POLL, "job_1")
    with own_redis.client() as client:
        client.config_set("maxmemory", 1)

    assert seconds_of(lambda: broker.publish(POLL, "job_2")) < BOUND_S

    assert not broker.publish(POLL, "job_3")
    broker.close()


def test_a_redis_behind_a_socket_file_is_spoken_to_alike_by_both(tmp_path: Path) -> None:
    path = tmp_path / "r.sock"
    server = subprocess.Popen(
        [str(find_redis()), "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(tmp_path)],
        stdout=subprocess.DEVNULL,
    )
    url = f"unix://{path}?db=3"
    try:
        with connect(url) as client:
            wait_until(partial(_answers, client), within_s=10, what="the server behind the socket")
            broker = CeleryBroker(url)
            assert broker.publish(POLL, "job_1")
            assert client.llen(f"{KEY_PREFIX}poll") == 1
        broker.close()
    finally:
        server.kill()
        server.wait()


def _answers(client: redis.Redis) -> bool:
    """The file is there before anyone listens at it."""
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False
