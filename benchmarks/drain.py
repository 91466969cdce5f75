"""How many stored events a second one worker applies."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from benchmarks import raw
from benchmarks.benchmark import Benchmark, Case, Figures, Target
from benchmarks.filling import add_events, add_jobs
from benchmarks.naive.fleet import NaiveFleet
from benchmarks.parts import product
from benchmarks.stage import KINDS, POSTGRESQL, SQLITE, Stage
from jobs.storage.database import Database
from webhooks.incoming.applying.drain import drain

_MESSAGES = "Celery, messages that do nothing"
_WARM_UP = 20
_numbers = itertools.count(1)


@contextmanager
def setup(stage: Stage) -> Iterator[Sequence[Case]]:
    """The naive fleets are up; the product's and the driver's databases are made fresh for each repeat."""
    with ExitStack() as stack:
        fleets: dict[str, NaiveFleet] = {}
        for kind in KINDS:
            fleets[kind] = NaiveFleet.start(stage, stage.database_url(kind))
            stack.callback(fleets[kind].stop)
        for fleet in fleets.values():
            fleet.wait_until_ready()
            fleet.drain(_WARM_UP)
        messages = Case(_MESSAGES, lambda: _rate(fleets[SQLITE].messages(stage.scale.naive_drained * 2)))
        yield [messages, *_cases(stage, fleets)]


def _cases(stage: Stage, fleets: dict[str, NaiveFleet]) -> Iterator[Case]:
    for kind in KINDS:
        limit = f"{kind}, bare driver, batches of 100"
        naive = fleets[kind]
        yield Case(limit, partial(_limit, stage, kind))
        yield Case(f"{kind}, drain", partial(_drain, stage, kind), limit)
        yield Case(f"{kind}, naive", partial(_naive, stage, naive), limit)


def _drain(stage: Stage, kind: str) -> Figures:
    count = stage.scale.drained
    with product(stage, _filled(stage, kind)) as runtime:
        begin = time.perf_counter()
        counts = drain(runtime)
        rate = counts.settled / (time.perf_counter() - begin)
        assert counts.settled == count == _applied(runtime.database), counts
    return _rate(rate)


def _naive(stage: Stage, fleet: NaiveFleet) -> Figures:
    return _rate(fleet.drain(stage.scale.naive_drained))


def _limit(stage: Stage, kind: str) -> Figures:
    url = _filled(stage, kind)
    rate = raw.drain(url)
    database = Database.connect(url)
    assert _applied(database) == stage.scale.drained
    database.close()
    return _rate(rate)


def _filled(stage: Stage, kind: str) -> str:
    url, prefix = stage.database_url(kind), f"d{next(_numbers)}"
    with product(stage, url) as runtime:
        add_jobs(runtime.database, prefix, stage.scale.drained)
        add_events(runtime, prefix, stage.scale.drained)
    return url


def _applied(database: Database) -> int:
    with database.read() as tx:
        statement = "SELECT count(*) FROM jobs WHERE state = 'succeeded' AND version = 4"
        return int(tx.connection.exec_driver_sql(statement).scalar_one())


def _rate(per_s: float) -> Figures:
    return {"events/s": per_s}


BENCHMARK = Benchmark(
    "drain",
    "stored events applied by one worker: state, history, outbox and inbox, each once",
    "events/s",
    setup,
    targets=(
        *(Target(f"{kind}, drain", "events/s", 0.6, f"{kind}, bare driver, batches of 100") for kind in KINDS),
        *(Target(f"{kind}, drain", "events/s", 20, f"{kind}, naive") for kind in KINDS),
        Target(f"{SQLITE}, drain", "events/s", 40, _MESSAGES),
        Target(f"{POSTGRESQL}, drain", "events/s", 20, _MESSAGES),
    ),
)
