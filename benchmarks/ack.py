"""How many signed webhooks a second are acknowledged, durable and deduplicated, at c=32."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from benchmarks.apps import PLAIN_DOOR
from benchmarks.benchmark import Benchmark, Case, Figures, Target
from benchmarks.load import MOST_PER_SECOND, Answered, press
from benchmarks.processes import Running, start_server, wait_for_server
from benchmarks.signing import PATH, write_requests
from benchmarks.stage import KINDS, SQLITE, Stage
from jobs.storage.database import Database

BARE = "bare Flask 200"
_SERVER = "server alone"
_VERIFIED = "verified, not stored"
_PRODUCT = "benchmarks.apps:both_doors"
_SLOW = ", +1 ms sync"
_numbers = itertools.count(1)


@contextmanager
def setup(stage: Stage) -> Iterator[Sequence[Case]]:
    """Every server is up before the first is measured."""
    with ExitStack() as stack:
        yardsticks = ("benchmarks.apps:empty", "benchmarks.apps:bare", "benchmarks.apps:verify_only")
        pending = [_Server.start(stage, stack, factory, stage.database_url(SQLITE)) for factory in yardsticks]
        pending += [_Server.start(stage, stack, _PRODUCT, stage.database_url(kind)) for kind in KINDS]
        if stage.slow_disk is not None:
            slow = (stage.database_url(kind, slow=True) for kind in KINDS)
            pending += [_Server.start(stage, stack, _PRODUCT, url, slow=True) for url in slow]
        for server in pending:
            wait_for_server(server.running, server.address)
        yield list(_cases(*pending))


@dataclass(frozen=True, slots=True)
class _Server:
    """One that was started, and where it stores."""

    stage: Stage
    running: Running
    address: str
    database_url: str

    @classmethod
    def start(cls, stage: Stage, stack: ExitStack, factory: str, url: str, *, slow: bool = False) -> _Server:
        running, address = start_server(factory, {**stage.environ(url), **((slow and stage.slow_disk) or {})})
        stack.callback(running.stop)
        return cls(stage, running, address, url)

    def press(self) -> Figures:
        """Load without a look at the database."""
        return self._press(PATH)[1]

    def press_and_count(self, path: str = PATH) -> Figures:
        """Load; every acknowledgement must have left its row."""
        before = _count(self.database_url)
        answered, figures = self._press(path)
        missing = answered.requests - answered.failed - (_count(self.database_url) - before)
        return {**figures, "acks without a row": max(missing, 0)}

    def _press(self, path: str) -> tuple[Answered, Figures]:
        number, seconds = next(_numbers), self.stage.scale.load_s
        runs = (f"a{number}-{index}" for index in range(int(seconds * MOST_PER_SECOND)))
        requests = write_requests(self.stage.folder / "requests", runs)
        before_s = self.running.cpu_s()
        answered = press(self.address, requests, seconds=seconds, path=path)
        cpu_us = (self.running.cpu_s() - before_s) / max(answered.requests, 1) * 1e6
        return answered, {**answered.figures, "server CPU us": cpu_us}


def _cases(server: _Server, bare: _Server, verifier: _Server, *products: _Server) -> Iterator[Case]:
    yield Case(BARE, bare.press)
    yield Case(_SERVER, server.press, BARE)
    yield Case(_VERIFIED, verifier.press, BARE)
    for kind, product in zip(KINDS, products, strict=False):
        yield Case(f"{kind}, hot path", product.press_and_count, BARE)
        yield Case(f"{kind}, Flask view", partial(product.press_and_count, PLAIN_DOOR + PATH), BARE)
    for kind, product in zip(KINDS, products[len(KINDS) :], strict=False):
        yield Case(f"{kind}, hot path{_SLOW}", product.press_and_count, f"{kind}, hot path")


def _count(url: str) -> int:
    database = Database.connect(url)
    try:
        with database.read() as tx:
            return int(tx.connection.exec_driver_sql("SELECT count(*) FROM inbox_events").scalar_one())
    finally:
        database.close()


BENCHMARK = Benchmark(
    "ack",
    "signed webhooks acknowledged, durable and deduplicated, c=32, 2 workers x 16 threads",
    "req/s",
    setup,
    targets=(
        *(Target(f"{kind}, hot path", "req/s", 1.0, BARE) for kind in KINDS),
        *(Target(f"{kind}, Flask view", "req/s", 0.4, BARE) for kind in KINDS),
        *(Target(f"{kind}, hot path", "p99 ms", 1.0, BARE, "<=") for kind in KINDS),
        *(Target(f"{kind}, hot path{_SLOW}", "req/s", 0.9, f"{kind}, hot path") for kind in KINDS),
    ),
)
