"""Claiming 1,000 due polls out of many open jobs, and looking when nothing is due."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from statistics import median

from benchmarks.benchmark import Benchmark, Case, Figures, Target
from benchmarks.filling import add_jobs
from benchmarks.parts import product
from benchmarks.stage import KINDS, POSTGRESQL, SQLITE, Stage
from jobs.services.claims import claim_due
from jobs.services.runtime import Runtime
from jobs.storage.database import Database

_DUE = 1_000
_CLAIM = 200  # as the sweep of polls does
_EMPTY_LOOKS = 20
_HOUR_US = 3600 * 1_000_000


@contextmanager
def setup(stage: Stage) -> Iterator[Sequence[Case]]:
    """One database of each size and kind."""
    with ExitStack() as stack:
        cases = []
        for kind in KINDS:
            for count in stage.scale.open_jobs:
                runtime = stack.enter_context(product(stage, stage.database_url(kind)))
                add_jobs(runtime.database, "s", count, polled=True)
                name = f"{kind}, {count:,} open"
                cases.append(Case(f"{name}, one statement", partial(_measure, runtime, count, _claim_raw)))
                cases.append(Case(name, partial(_measure, runtime, count, _claim), f"{name}, one statement"))
        yield cases


def _measure(runtime: Runtime, count: int, claim: Callable[[Runtime], int]) -> Figures:
    empty_ms = median(_timed_ms(partial(claim, runtime)) for _ in range(_EMPTY_LOOKS))
    _make_due(runtime.database, count)
    begin, claimed = time.perf_counter(), 0
    while got := claim(runtime):
        claimed += got
    whole_ms = (time.perf_counter() - begin) * 1e3
    _undo(runtime.database)
    assert claimed == _DUE, claimed
    return {"1,000 due ms": whole_ms, "none due ms": empty_ms}


def _claim(runtime: Runtime) -> int:
    return len(claim_due(runtime, "poll", _CLAIM))


def _claim_raw(runtime: Runtime) -> int:
    """The least that must be done: one token for all, no providers, no budgets."""
    now = int(runtime.clock.now().timestamp() * 1e6)
    skip = "" if runtime.database.is_sqlite else " FOR UPDATE SKIP LOCKED"
    statement = (
        f"UPDATE jobs SET lease_token = 'raw', lease_until = {now + 30_000_000} WHERE id IN (SELECT id FROM jobs"
        f" WHERE next_poll_at IS NOT NULL AND next_poll_at <= {now} AND (lease_until IS NULL OR lease_until <= {now})"
        f" ORDER BY next_poll_at LIMIT {_CLAIM}{skip}) RETURNING id"
    )
    with runtime.database.write() as tx:
        return len(tx.connection.exec_driver_sql(statement).all())


def _make_due(database: Database, count: int) -> None:
    """Spread over the whole table, as real ones are; due just now, since what is late is taken on at a pace."""
    due_at = int(time.time() * 1e6) - 1_000_000
    step = count // _DUE
    ids = ", ".join(f"'job_sz{1_000_000_000 + number * step}'" for number in range(1, _DUE + 1))
    _change(database, f"UPDATE jobs SET next_poll_at = {due_at} WHERE id IN ({ids})")


def _undo(database: Database) -> None:
    _change(
        database,
        f"UPDATE jobs SET next_poll_at = next_poll_at + {3 * _HOUR_US}, lease_token = NULL, lease_until = NULL"
        " WHERE lease_token IS NOT NULL",
    )


def _change(database: Database, statement: str) -> None:
    with database.write() as tx:
        assert tx.connection.exec_driver_sql(statement).rowcount == _DUE


def _timed_ms(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1e3


BENCHMARK = Benchmark(
    "sweep",
    "claiming 1,000 due polls in claims of 200, and looking when none is due",
    "1,000 due ms",
    setup,
    targets=(
        Target(f"{SQLITE}, 1,000,000 open", "1,000 due ms", 1.5, f"{SQLITE}, 100,000 open", "<="),
        Target(f"{POSTGRESQL}, 1,000,000 open", "1,000 due ms", 2.0, f"{POSTGRESQL}, 100,000 open", "<="),
        *(
            Target(f"{kind}, {size} open", "none due ms", 1.0, None, "<=")
            for kind in KINDS
            for size in ("100,000", "1,000,000")
        ),
    ),
)
