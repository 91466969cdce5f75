"""The memory of each process of the fleet, before and after a number of events."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from benchmarks.benchmark import Benchmark, Case, Figures
from benchmarks.filling import add_jobs, run_names
from benchmarks.fleet import Fleet, fleet
from benchmarks.load import press
from benchmarks.signing import write_requests
from benchmarks.stage import POSTGRESQL, Stage
from jobs.storage.database import Database
from tests.services.waiting import wait_until

_PART = 40_000
_PATIENCE_S = 600
_IN_FLIGHT = 1_000  # more than are on their way when a load ends; events are stored about in the order sent
_numbers = itertools.count(1)


@contextmanager
def setup(stage: Stage) -> Iterator[Sequence[Case]]:
    """A whole fleet, warmed up by a first thousand events; all cases are looks at one and the same run."""
    with fleet(stage, stage.database_url(POSTGRESQL)) as running:
        _send(stage, running, 1_000)
        before = _resident(running)
        sent = 0
        while sent < stage.scale.memory_events:
            sent += _send(stage, running, min(_PART, stage.scale.memory_events - sent))
        after = _resident(running)
        stage.remarks.append(f"{sent:,} events were applied between the two looks; children may have been replaced")
        yield [Case(name, partial(_figures, before.get(name), mib), repeats=1) for name, mib in after.items()]


def _figures(before: float | None, after: float) -> Figures:
    known = {} if before is None else {"before MiB": before, "grown MiB": after - before}
    return {"after MiB": after, **known}


def _resident(running: Fleet) -> dict[str, float]:
    return {name: mib for process in running.processes for name, mib in process.resident_mib().items()}


def _send(stage: Stage, running: Fleet, count: int) -> int:
    """Sends events in short loads until so many were stored and settled; returns how many."""
    database = Database.connect(running.database_url)
    prefix = f"m{next(_numbers)}"
    add_jobs(database, prefix, count)
    before = _stored(database)
    while (stored := _stored(database) - before) < count:
        # Each load begins where the last one ended: from the start again, a slow machine would send repeats for ever.
        rest = itertools.islice(run_names(prefix, count), max(0, stored - _IN_FLIGHT), None)
        requests = write_requests(stage.folder / "requests", rest)
        press(running.address, requests, seconds=1 if count <= _PART // 4 else 5)
    wait_until(lambda: not _waiting(database), within_s=_PATIENCE_S, what="the end of the inbox", every_s=0.2)
    database.close()
    return count


def _stored(database: Database) -> int:
    return _number(database, "SELECT count(*) FROM inbox_events")


def _waiting(database: Database) -> int:
    return _number(database, "SELECT count(*) FROM inbox_events WHERE next_try_at IS NOT NULL")


def _number(database: Database, query: str) -> int:
    with database.read() as tx:
        return int(tx.connection.exec_driver_sql(query).scalar_one())


BENCHMARK = Benchmark("memory", "resident memory of each process, before and after many events", "after MiB", setup)
