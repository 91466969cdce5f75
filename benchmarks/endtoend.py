"""Webhooks acknowledged, and how fast what they say is in the jobs: each exactly once, a storm of repeats included."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from benchmarks.benchmark import Benchmark, Case, Figures, Target
from benchmarks.filling import add_jobs, run_names
from benchmarks.fleet import fleet
from benchmarks.load import press
from benchmarks.naive.fleet import NaiveFleet
from benchmarks.processes import start_server, wait_for_server
from benchmarks.signing import write_requests
from benchmarks.stage import KINDS, POSTGRESQL, SQLITE, Stage
from jobs.storage.database import Database
from tests.services.waiting import wait_until

_NAIVE = "naive, PostgreSQL"
# More than can be acknowledged: a file that runs out would turn new events into repeats.
_RUNS_PER_S = 15_000
_NAIVE_RUNS_PER_S = 4_000
_PATIENCE_S = 180
_STORM_S = 1.0
_WARM = 100  # requests answered within a second
_WARM_UP, _LOAD = "w", "e"  # prefixes of runs

_STORED = "SELECT count(*) FROM inbox_events"
_APPLIED = "SELECT count(*) FROM job_transitions WHERE event_id IS NOT NULL"
_ONCE = """
    SELECT count(*), count(DISTINCT event_id), (SELECT coalesce(sum(version - 3), 0) FROM jobs WHERE version > 3)
    FROM job_transitions WHERE event_id IS NOT NULL
"""
_NAIVE_STORED = "SELECT count(*) FROM naive_events"
_NAIVE_APPLIED = "SELECT count(*) FROM naive_transitions"
_NAIVE_ONCE = """
    SELECT count(*), count(DISTINCT event_id), (SELECT coalesce(sum(version - 1), 0) FROM naive_jobs WHERE version > 1)
    FROM naive_transitions
"""


@contextmanager
def setup(stage: Stage) -> Iterator[Sequence[Case]]:
    """Each repeat has a fleet and a database of its own, so that none is measured beside an idle one."""
    yield [Case(_NAIVE, partial(_naive, stage)), *(Case(kind, partial(_ours, stage, kind), _NAIVE) for kind in KINDS)]


@dataclass(frozen=True, slots=True)
class _Ledger:
    """What the database says came of a load."""

    database: Database
    stored: str
    applied: str
    once: str

    def ask(self, statement: str) -> tuple[int, ...]:
        with self.database.read() as tx:
            return tuple(int(number) for number in tx.connection.exec_driver_sql(statement).one())

    def behind(self) -> int:
        """How many are stored and not applied."""
        return self.ask(self.stored)[0] - self.ask(self.applied)[0]

    def lost_or_doubled(self) -> float:
        """0 where every stored event has one transition, and every transition its version."""
        numbers = (*self.ask(self.stored), *self.ask(self.once))
        return float(max(numbers) - min(numbers))


def _ours(stage: Stage, kind: str) -> Figures:
    """The fleet as it is shipped."""
    url, count = stage.database_url(kind), int(_RUNS_PER_S * stage.scale.load_s)
    database = Database.connect(url)
    for prefix in (_WARM_UP, _LOAD):
        add_jobs(database, prefix, count)
    with fleet(stage, url) as running:
        figures = _measure(stage, running.address, count, _Ledger(database, _STORED, _APPLIED, _ONCE))
    database.close()
    return figures


def _naive(stage: Stage) -> Figures:
    """On the same server as ours: its limit is its worker, which another server would not move."""
    url, count = stage.database_url(POSTGRESQL), int(_NAIVE_RUNS_PER_S * stage.scale.load_s)
    naive = NaiveFleet.start(stage, url)
    web, address = start_server("benchmarks.naive.web:create_app", {**stage.environ(url), **naive.environ})
    database = Database.connect(url)
    try:
        naive.wait_until_ready()
        wait_for_server(web, address)
        for prefix in (_WARM_UP, _LOAD):
            naive.add_jobs(run_names(prefix, count))
        return _measure(stage, address, count, _Ledger(database, _NAIVE_STORED, _NAIVE_APPLIED, _NAIVE_ONCE))
    finally:
        database.close()
        web.stop()
        naive.stop()


def _measure(stage: Stage, address: str, count: int, ledger: _Ledger) -> Figures:
    """Warms up, presses, waits for the last transition, repeats everything, and asks the ledger."""
    _warm_up(stage, address, count, ledger)
    requests = write_requests(stage.folder / "requests", run_names(_LOAD, count))
    (before,) = ledger.ask(ledger.applied)
    answered = press(address, requests, seconds=stage.scale.load_s)
    began_at = time.perf_counter() - answered.seconds
    behind = ledger.behind()
    wait_until(lambda: not ledger.behind(), within_s=_PATIENCE_S, what="the last transition")
    applied_per_s = (ledger.ask(ledger.applied)[0] - before) / (time.perf_counter() - began_at)
    press(address, requests, seconds=_STORM_S)
    wait_until(lambda: not ledger.behind(), within_s=_PATIENCE_S, what="the end of the storm")
    acks_per_s = answered.requests / answered.seconds
    return {
        "applied/s": applied_per_s,
        "ack/s": acks_per_s,
        "applied per ack": applied_per_s / acks_per_s,
        "ack p99 ms": answered.p99_ms,
        "behind at the end": float(behind),
        "failed": float(answered.failed),
        "lost or doubled": ledger.lost_or_doubled(),
    }


def _warm_up(stage: Stage, address: str, count: int, ledger: _Ledger) -> None:
    """A process's first requests open its connections; on a busy machine that takes seconds."""
    requests = write_requests(stage.folder / "warm-up", run_names(_WARM_UP, count))
    while press(address, requests, seconds=_STORM_S).requests < _WARM:
        pass
    wait_until(lambda: not ledger.behind(), within_s=_PATIENCE_S, what="the end of the warm-up")


def _target(kind: str) -> tuple[Target, ...]:
    once = Target(kind, "lost or doubled", 0, None, "<=")
    return Target(kind, "applied per ack", 0.97), Target(kind, "applied/s", 20, _NAIVE), once


BENCHMARK = Benchmark(
    "endtoend",
    "signed webhooks acknowledged and applied, each once, c=32; counted until the last transition is committed",
    "applied/s",
    setup,
    targets=(*_target(SQLITE), *_target(POSTGRESQL)),
)
