"""``/metrics``: what the rows and the queues say at the moment of the scrape, and what the processes measured.

Counters and gauges are read from the database, so they are true over processes, machines and restarts. Histograms
come from ``jobs.telemetry``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from homing.redis_probe import RedisProbe
from jobs import telemetry
from jobs.broker import QUEUES
from jobs.core.errors import Unavailable
from jobs.services.letters.growth import ALARM as LETTER_ALARM
from jobs.storage.alarms import raised_since
from jobs.storage.database import Database, Transaction
from jobs.storage.spend import list_spend
from jobs.storage.tallies import (
    count_jobs,
    count_letters_after,
    count_open_letters,
    count_reviews,
    count_transitions,
    homecomings,
    list_accounts,
    list_outages,
    oldest_unrelayed,
)
from reconciler.heartbeats import list_heartbeats

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


def exposition(database: Database, probe: RedisProbe) -> tuple[bytes, str]:
    """The metrics as Prometheus reads them, and their media type."""
    registry = CollectorRegistry()
    registry.register(Rows(database))
    registry.register(Queues(probe))
    if folder := os.environ.get(SHARED_FOLDER):
        _forget_the_dead(Path(folder))
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # prometheus_client leaves it untyped
    else:
        registry.register(telemetry.registry)
    return generate_latest(registry), CONTENT_TYPE_LATEST


def _forget_the_dead(folder: Path) -> None:
    """What a process has open, such as streams, it had: a killed one cannot take its number back."""
    for file in folder.glob("gauge_live*_*.db"):
        number = file.stem.rpartition("_")[2]
        if number.isdigit() and not psutil.pid_exists(int(number)):
            mark_process_dead(int(number), str(folder))  # type: ignore[no-untyped-call] # left untyped there


class Rows(Collector):
    """What the database says."""

    def __init__(self, database: Database) -> None:
        """Reads nothing yet."""
        self._database = database

    def collect(self) -> Iterator[Metric]:
        """Every family; only ``homing_database_up`` where the database is away."""
        try:
            with self._database.read() as tx:
                families = list(_families(tx))
        except Unavailable:
            families = []
        yield GaugeMetricFamily("homing_database_up", "Whether the database answered", value=bool(families))
        yield from families


class Queues(Collector):
    """What Redis says."""

    def __init__(self, probe: RedisProbe) -> None:
        """Asks nothing yet."""
        self._probe = probe

    def collect(self) -> Iterator[Metric]:
        """Every family; only ``homing_redis_up`` where Redis is away."""
        is_up = self._probe.fault() is None
        yield GaugeMetricFamily("homing_redis_up", "Whether Redis answered", value=is_up)
        if is_up:
            names = sorted(set(QUEUES.values()))
            yield _per_queue("homing_queue_depth", "Messages that wait", self._probe.depths(names))
            yield _per_queue("homing_queue_unacked", "Messages a worker holds", self._probe.unacked(names))


def _per_queue(name: str, words: str, values: Mapping[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, words, labels=("queue",))
    for queue, value in values.items():
        family.add_metric([queue], value)
    return family


def _families(tx: Transaction) -> Iterator[Metric]:
    transitions = count_transitions(tx)
    yield _gauges("homing_jobs", "Jobs", ("state", "provider"), count_jobs(tx))
    yield _counters("homing_transitions", "Applied steps", ("to_state", "source", "provider"), transitions)
    yield _counters("homing_home_by", "Jobs that ended", ("provider", "source"), homecomings(transitions))
    yield _gauges("homing_dead_letters", "Dead letters that wait for a decision", ("kind",), count_open_letters(tx))
    yield _counters("homing_dead_letters_created", "Dead letters ever written", ("kind",), count_letters_after(tx))
    surges = raised_since(tx, LETTER_ALARM) is not None
    yield GaugeMetricFamily("homing_dead_letters_surging", "Whether they come faster than they should", value=surges)
    yield _gauges("homing_review", "Jobs that wait for a person", ("review_reason",), count_reviews(tx))
    yield _spent(tx)
    yield _outages(tx)
    oldest_s = _age_s(tx.now, oldest_unrelayed(tx))
    yield GaugeMetricFamily("homing_outbox_oldest_seconds", "Age of the oldest event to relay", value=oldest_s)
    yield _heartbeats(tx)


#: Columns whose label has another name.
_LABELS = {"to_state": "to", "review_reason": "reason"}


def _gauges(name: str, words: str, columns: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> Metric:
    return _filled(GaugeMetricFamily, name, words, columns, rows)


def _counters(name: str, words: str, columns: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> Metric:
    return _filled(CounterMetricFamily, name, words, columns, rows)


def _filled(
    family_of: Callable[..., Any],
    name: str,
    words: str,
    columns: tuple[str, ...],
    rows: Iterable[Mapping[str, Any]],
) -> Metric:
    family = family_of(name, words, labels=[_LABELS.get(column, column) for column in columns])
    for row in rows:
        family.add_metric([str(row[column]) for column in columns], row["count"])
    metric: Metric = family
    return metric


def _spent(tx: Transaction) -> Metric:
    words = "What jobs have cost, as far as their providers said"
    family = GaugeMetricFamily("homing_spend", words, labels=("provider", "currency"))
    for row in list_spend(tx):
        family.add_metric([row["provider"], row["currency"]], row["amount"])
    return family


def _outages(tx: Transaction) -> Metric:
    family = GaugeMetricFamily(
        "homing_provider_outage_seconds", "Since a provider is away; 0 while it answers", labels=("provider",)
    )
    away = list_outages(tx)
    for name in sorted(list_accounts(tx)):
        family.add_metric([name], _age_s(tx.now, away[name]["outage_at"]) if name in away else 0)
    return family


def _heartbeats(tx: Transaction) -> Metric:
    family = GaugeMetricFamily(
        "homing_heartbeat_age_seconds", "Since a part of the fleet last worked", labels=("name",)
    )
    for beat in list_heartbeats(tx):
        family.add_metric([beat.name], _age_s(tx.now, beat.beat_at))
    return family


def _age_s(now: datetime, since: datetime | None) -> float:
    return 0.0 if since is None else max((now - since).total_seconds(), 0.0)
