"""What a fleet without work asks of Redis and of the database."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import redis
from sqlalchemy.engine import make_url

from benchmarks.benchmark import Benchmark, Case, Figures
from benchmarks.fleet import fleet
from benchmarks.postgres import log_of
from benchmarks.stage import Stage

_SETTLE_S = 5
_STATEMENT = re.compile(rb"LOG:  (?:statement|execute [^:]*): ")
_MINUTES_A_DAY = 24 * 60


@contextmanager
def setup(stage: Stage) -> Iterator[Sequence[Case]]:
    """Everything but Flower, on a Redis and a PostgreSQL of its own which count what they are asked."""
    url = stage.own_postgres("log_statement=all")
    with fleet(stage, url) as running:
        time.sleep(_SETTLE_S)
        measure = partial(_measure, stage, running.redis, log_of(make_url(url).port or 0))
        yield [Case("web, two workers, beat", measure, repeats=1)]


def _measure(stage: Stage, client: redis.Redis, log: Path) -> Figures:
    before, position = _commands(client), log.stat().st_size
    begin = time.monotonic()
    time.sleep(stage.scale.idle_s)
    after = _commands(client)
    with log.open("rb") as file:
        file.seek(position)
        statements = len(_STATEMENT.findall(file.read()))
    minutes = (time.monotonic() - begin) / 60
    asked = {name: (count - before.get(name, 0)) / minutes for name, count in after.items()}
    per_minute = sum(asked.values())
    busiest = sorted(asked, key=lambda name: -asked[name])[:5]
    stage.remarks.append("Redis, per minute: " + ", ".join(f"{name} {asked[name]:,.0f}" for name in busiest))
    return {
        "Redis/min": per_minute,
        "SQL/min": statements / minutes,
        "Redis/day": per_minute * _MINUTES_A_DAY,
        "SQL/day": statements / minutes * _MINUTES_A_DAY,
    }


def _commands(client: redis.Redis) -> Mapping[str, int]:
    statistics = client.info("commandstats")
    calls = {name.removeprefix("cmdstat_"): int(entry["calls"]) for name, entry in statistics.items()}
    calls.pop("info", None)  # our own question
    return calls


BENCHMARK = Benchmark(
    "idle", "an idle fleet's Redis commands and SQL statements, Flower not counted", "Redis/min", setup
)
