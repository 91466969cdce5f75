"""The fleet as it is shipped, over a database of the benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import redis

from benchmarks.processes import PRODUCT, Running, start, start_server, wait_for_server
from benchmarks.stage import Stage
from tests.services.redis import RedisService
from tests.services.waiting import wait_until

_START_S = 180  # on a machine that is busy otherwise
EVERYBODY = ("worker-events", "worker-io", "beat")


@dataclass(frozen=True, slots=True)
class Fleet:
    """Running processes, and the Redis they share with nobody else."""

    address: str
    database_url: str
    processes: tuple[Running, ...]
    redis: redis.Redis


@contextmanager
def fleet(stage: Stage, database_url: str, *, names: tuple[str, ...] = EVERYBODY) -> Iterator[Fleet]:
    """The web server and some others; everything answers when this yields.

    Args:
        stage: Where.
        database_url: Migrated.
        names: Of the processes beside the web server.
    """
    with ExitStack() as stack:
        service = RedisService.start_in(stage.new_folder())
        stack.callback(service.kill)
        environ = stage.environ(database_url, redis_url=service.url)
        web, address = start_server(PRODUCT, environ)
        stack.callback(web.stop)
        others = [start(name, environ) for name in names]
        for running in others:
            stack.callback(running.stop)
        workers = sum(name.startswith("worker") for name in names)
        client = service.client()
        wait_until(lambda: _listening(client) >= workers, within_s=_START_S, what="every worker waiting for messages")
        wait_for_server(web, address)
        yield Fleet(address, database_url, (web, *others), client)


def _listening(client: redis.Redis) -> int:
    """How many wait for a message at this moment."""
    return sum(str(entry["cmd"]).startswith("brpop") for entry in client.client_list())
