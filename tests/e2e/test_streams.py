"""F64: hundreds of streams, opened and abandoned, over the server we ship with."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis

from homing.up.processes import STREAM_THREADS, WEB_THREADS
from jobs.core.states import JobState
from jobs.services.keys import create_key
from jobs.services.stream_bell import CHANNEL
from jobs.storage.database import Database
from tests.e2e.web_server import WebServer
from tests.factories import TENANT, an_observer, new_job, seen
from tests.services.waiting import wait_until
from tests.vectors import TEXT_SECRET

_STREAMS = 300
_THREADS = ("--blocking-threads", str(WEB_THREADS + STREAM_THREADS), "--blocking-threads-idle-timeout", "5")


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path, redis_url: str) -> Iterator[WebServer]:
    started = WebServer(sqlite_url, tmp_path, {"HOMING_REDIS_URL": redis_url}, (*_THREADS, "--backpressure", "656"))
    started.start()
    yield started
    started.stop()


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    connected = Database.connect(sqlite_url)
    yield connected
    connected.close()


def open_stream(server: WebServer, job_id: str, key: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    lines = [f"GET /v1/jobs/{job_id}/events HTTP/1.1", "Host: homing.test", f"Authorization: Bearer {key}"]
    connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    return connection


def hear(stream: socket.socket, wanted: bytes) -> bytes:
    """Reads on until a stream has said something."""
    text = b""
    while wanted not in text:
        part = stream.recv(65536)
        assert part, text
        text += part
    return text


def acknowledge(server: WebServer, number: int) -> float:
    """Posts a signed webhook; how long its acknowledgement took, in seconds."""
    body = b'{"id":"evt-%d","job":"p-%d","status":"running"}' % (number, number)
    signature = hmac.new(TEXT_SECRET.encode(), body, hashlib.sha256).hexdigest()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    began = time.perf_counter()
    connection.request("POST", "/webhooks/plain", body, {"X-Signature": f"sha256={signature}"})
    answer = connection.getresponse()
    answer.read()
    took = time.perf_counter() - began
    connection.close()
    assert answer.status == 200
    return took


@pytest.mark.timeout(150)
def test_f64_streams_take_nothing_from_webhooks_and_leave_nothing_behind(
    server: WebServer, database: Database, redis_service: object, redis_url: str
) -> None:
    """F64: threads, sockets and subscriptions fall back to the baseline; acknowledgements stay quick throughout."""
    key = create_key(database, tenant=TENANT).key
    job_id = new_job(database)["id"]
    acknowledge(server, 0)
    worker = psutil.Process(server.worker)
    threads, sockets = worker.num_threads(), worker.num_fds()

    streams = [open_stream(server, job_id, key) for _ in range(_STREAMS)]
    acks = [acknowledge(server, number) for number in range(1, 60)]
    memory = worker.memory_info().rss
    with database.write() as tx:
        an_observer().observe(tx, job_id, seen(JobState.RUNNING))
    told = [hear(stream, b"event: job.") for stream in streams]

    assert max(acks) < 1
    assert len(told) == _STREAMS
    with redis.Redis.from_url(redis_url) as client:
        assert client.pubsub_numsub(CHANNEL)[0][1] == 1
        for stream in streams:
            stream.close()
        wait_until(lambda: client.pubsub_numsub(CHANNEL)[0][1] == 0, within_s=40, what="the end of the subscription")
    wait_until(lambda: worker.num_threads() <= threads + WEB_THREADS, within_s=40, what="threads at their baseline")
    wait_until(lambda: worker.num_fds() <= sockets + 40, within_s=10, what="sockets at their baseline")

    again = [open_stream(server, job_id, key) for _ in range(_STREAMS)]
    assert worker.memory_info().rss < memory * 1.1
    for stream in again:
        stream.close()
