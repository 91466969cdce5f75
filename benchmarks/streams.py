"""Webhooks while hundreds of streams are open: the same server, with and without them."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from benchmarks.benchmark import Benchmark, Case, Figures, Target
from benchmarks.load import MOST_PER_SECOND, press
from benchmarks.processes import PRODUCT, Running, start_server, wait_for_server
from benchmarks.signing import write_requests
from benchmarks.stage import SQLITE, Stage
from jobs.services.keys import create_key
from jobs.storage.database import Database
from tests.factories import TENANT, new_job

_STREAMS = 300
_ALONE = "no stream open"
_BESIDE = f"{_STREAMS} streams open"
_numbers = itertools.count(1)


@contextmanager
def setup(stage: Stage) -> Iterator[Sequence[Case]]:
    """Two servers, each over its own database; readers hang on the second."""
    with ExitStack() as stack:
        urls = [stage.database_url(SQLITE), stage.database_url(SQLITE)]
        servers = [start_server(PRODUCT, stage.environ(url)) for url in urls]
        for running, _ in servers:
            stack.callback(running.stop)
        for running, address in servers:
            wait_for_server(running, address)
        (alone, quiet), (beside, busy) = servers
        for stream in _open_streams(urls[1], busy):
            stack.callback(stream.close)
        yield [
            Case(_ALONE, partial(_measure, stage, alone, quiet)),
            Case(_BESIDE, partial(_measure, stage, beside, busy), _ALONE),
        ]


def _open_streams(database_url: str, address: str) -> list[socket.socket]:
    database = Database.connect(database_url)
    key, job_id = create_key(database, tenant=TENANT).key, new_job(database)["id"]
    database.close()
    port = int(address.rpartition(":")[2])
    request = f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    opened = []
    for _ in range(_STREAMS):
        stream = socket.create_connection(("127.0.0.1", port), timeout=20)
        stream.sendall(request)
        assert stream.recv(65536).startswith(b"HTTP/1.1 200")
        opened.append(stream)
    return opened


def _measure(stage: Stage, running: Running, address: str) -> Figures:
    most = int(MOST_PER_SECOND * stage.scale.load_s)
    ids = (f"s-{next(_numbers)}" for _ in range(most))
    requests = write_requests(stage.new_folder() / "requests", ids)
    figures = press(address, requests, seconds=stage.scale.load_s).figures
    return {**figures, "MiB": sum(running.resident_mib().values())}


BENCHMARK = Benchmark(
    "streams",
    f"webhooks acknowledged while {_STREAMS} streams are open, against none, SQLite, c=32",
    "req/s",
    setup,
    targets=(Target(_BESIDE, "req/s", 0.9, _ALONE),),
)
