"""From a callback to its committed effect, at rates that do not wait for us."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.benchmark import Benchmark, Case, Figures
from benchmarks.filling import add_jobs, run_names
from benchmarks.fleet import Fleet, fleet
from benchmarks.signing import PATH, write_requests
from benchmarks.stage import KINDS, Stage
from benchmarks.statistics import percentile
from jobs.storage.database import Database

_RATES = (50, 200, 1_000)
_LOOK_EVERY_S = 0.002
_PATIENCE_S = 30
#: PostgreSQL commits out of the order of its numbers; a look goes back so far.
_OVERLAP = 2_000
_numbers = itertools.count(1)


@contextmanager
def setup(stage: Stage) -> Iterator[Sequence[Case]]:
    """A fleet on each database."""
    with ExitStack() as stack:
        cases = []
        for kind in KINDS:
            running = stack.enter_context(fleet(stage, stage.database_url(kind), names=("worker-events", "beat")))
            _measure(stage, running, 50, count=20)
            cases += [Case(f"{kind}, {rate:,}/s", partial(_measure, stage, running, rate)) for rate in _RATES]
        yield cases


def _measure(stage: Stage, running: Fleet, rate: int, *, count: int | None = None) -> Figures:
    prefix, count = f"l{next(_numbers)}", count or int(rate * stage.scale.latency_s)
    database = Database.connect(running.database_url)
    add_jobs(database, prefix, count)
    runs = list(run_names(prefix, count))
    requests = write_requests(stage.folder / "requests", runs)
    log = stage.folder / "left_at"
    command = [sys.executable, "-m", "benchmarks.generator", str(requests), running.address + PATH]
    sender = subprocess.Popen([*command, "--rate", str(rate), "--log", str(log)], stdout=subprocess.PIPE, text=True)
    seen_at = _watch(database, set(runs), sender)
    answered = json.loads(sender.communicate()[0])
    database.close()
    return {**_spans(log, runs, seen_at), "ack p99 ms": answered["p99_ms"], "failed": answered["failed"]}


def _watch(database: Database, wanted: set[str], sender: subprocess.Popen[str]) -> dict[str, float]:
    """When each run's new state was first seen committed, to 2 ms."""
    seen_at: dict[str, float] = {}
    last, give_up_at = 0, float("inf")
    while len(seen_at) < len(wanted) and time.monotonic() < give_up_at:
        with database.read() as tx:
            rows = tx.connection.exec_driver_sql(
                f"SELECT id, provider_job_id FROM job_transitions WHERE id > {last - _OVERLAP}"
            ).all()
        now = time.time()
        for number, run in rows:
            last = max(last, number)
            if run in wanted:
                seen_at.setdefault(run, now)
        if sender.poll() is not None and give_up_at == float("inf"):
            give_up_at = time.monotonic() + _PATIENCE_S
        time.sleep(_LOOK_EVERY_S)
    return seen_at


def _spans(log: Path, runs: Sequence[str], seen_at: dict[str, float]) -> Figures:
    left_at = [float(line) for line in log.read_text().splitlines()]
    spans_ms = [(seen_at[run] - left) * 1e3 for run, left in zip(runs, left_at, strict=True) if run in seen_at]
    return {
        "p50 ms": percentile(spans_ms, 0.5),
        "p99 ms": percentile(spans_ms, 0.99),
        "lost": float(len(runs) - len(spans_ms)),
    }


BENCHMARK = Benchmark("latency", "from a callback to the committed state of its job, open loop", "p50 ms", setup)
