from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from prometheus_client.parser import text_string_to_metric_families

from homing.celery_app import KEY_PREFIX
from homing.metrics import SHARED_FOLDER, _forget_the_dead, exposition
from homing.redis_probe import RedisProbe
from homing.web import create_app
from jobs import telemetry
from jobs.clock import FakeClock
from jobs.core.states import JobState
from jobs.storage.accounts import lock_account, update_account
from jobs.storage.database import Database
from jobs.storage.dead_letters import dead_letter
from reconciler.heartbeats import beat
from tests.factories import T, an_observer, insert_test_job, new_job, seen
from tests.fakes.runtime import a_runtime

NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture
def queues(redis_url: str) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(redis_url)
    yield client
    client.close()


def scrape(database: Database, redis_url: str = NOWHERE) -> dict[tuple[str, ...], float]:
    """Samples by name and label values, in the order of the labels' names."""
    body, _ = exposition(database, RedisProbe(redis_url))
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def test_jobs_and_their_steps_are_counted_from_the_rows(database: Database) -> None:
    observer = an_observer()
    new_job(database)
    home = str(new_job(database)["id"])
    with database.write() as tx:
        observer.observe(tx, home, seen(JobState.RUNNING))
        observer.observe(tx, home, seen(JobState.SUCCEEDED))

    samples = scrape(database)

    assert samples["homing_database_up",] == 1
    assert samples["homing_jobs", "renders", "pending"] == 1
    assert samples["homing_jobs", "renders", "succeeded"] == 1
    assert samples["homing_transitions_total", "renders", "webhook", "running"] == 1
    assert samples["homing_transitions_total", "renders", "webhook", "succeeded"] == 1
    assert samples["homing_home_by_total", "renders", "webhook"] == 1


def test_what_waits_for_a_person_is_counted(database: Database) -> None:
    new_job(database, review_reason="overdue", review_since=T)
    with database.write() as tx:
        dead_letter(tx, "submit", "job_1", reason="r", attempts=1, tenant=None)

    samples = scrape(database)

    assert samples["homing_review", "overdue"] == 1
    assert samples["homing_dead_letters", "submit"] == 1


def test_what_jobs_cost_is_added_up(database: Database) -> None:
    for _ in range(2):
        with database.write() as tx:
            an_observer().observe(tx, insert_test_job(tx)["id"], seen(provider_job_id=None, cost=0.25))

    assert scrape(database)["homing_spend", "USD", "renders"] == 0.5


def test_ages_grow(database: Database, clock: FakeClock) -> None:
    with database.write() as tx:
        an_observer().observe(tx, insert_test_job(tx)["id"], seen(JobState.RUNNING, at=clock.now()))
        beat(tx, {"sweep.polls": timedelta(seconds=1)})
    clock.advance(7)

    samples = scrape(database)

    assert samples["homing_outbox_oldest_seconds",] == pytest.approx(7, abs=0.001)
    assert samples["homing_heartbeat_age_seconds", "sweep.polls"] == 7


def test_queues_are_measured_where_redis_answers(sqlite_url: str, redis_url: str, queues: redis.Redis) -> None:
    queues.lpush(f"{KEY_PREFIX}submit", "m1", "m2")
    queues.hset(f"{KEY_PREFIX}unacked", "tag", json.dumps([{}, "", "submit"]))
    queues.hset(f"{KEY_PREFIX}unacked", "junk", "no message of ours")
    database = Database.connect(sqlite_url)

    samples = scrape(database, redis_url)

    assert samples["homing_redis_up",] == 1
    assert samples["homing_queue_depth", "submit"] == 2
    assert samples["homing_queue_depth", "poll"] == 0
    assert samples["homing_queue_unacked", "submit"] == 1
    database.close()


def test_redis_that_is_away_hides_nothing_else(sqlite_url: str) -> None:
    database = Database.connect(sqlite_url)

    samples = scrape(database)

    assert samples["homing_redis_up",] == 0
    assert samples["homing_database_up",] == 1
    assert not any(name.startswith("homing_queue") for name, *_ in samples)
    database.close()


def test_what_the_process_measured_is_exposed(sqlite_url: str) -> None:
    database = Database.connect(sqlite_url)
    telemetry.WEBHOOKS_RECEIVED.labels("renders", "test").inc()
    telemetry.HEAL_S.labels("renders").observe(3)

    samples = scrape(database)

    assert samples["homing_webhooks_received_total", "test", "renders"] >= 1
    assert samples["homing_heal_seconds_count", "renders"] >= 1
    database.close()


_COUNTS = "from jobs import telemetry; telemetry.POLLS.labels('renders', 'same').inc()"
_SCRAPES = """
import sys
from homing.metrics import SHARED_FOLDER, _forget_the_dead, exposition
from homing.redis_probe import RedisProbe
from jobs.storage.database import Database
print(exposition(Database.connect(sys.argv[1]), RedisProbe("redis://127.0.0.1:1/0"))[0].decode())
"""


def test_processes_that_share_a_folder_add_up(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    environment = {**os.environ, SHARED_FOLDER: str(tmp_path / "shared")}

    def run(program: str, *arguments: str) -> str:
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=50).stdout

    run(_COUNTS)
    run(_COUNTS)

    scraped = run(_SCRAPES, sqlite_url)
    assert 'homing_polls_total{provider="renders",result="same"} 2.0' in scraped
    assert "homing_database_up 1.0" in scraped


def test_the_route_speaks_prometheus(sqlite_url: str) -> None:
    database = Database.connect(sqlite_url)
    app = create_app(a_runtime(database, environ={"HOMING_REDIS_URL": NOWHERE}))

    answer = app.test_client().get("/metrics")

    assert answer.status_code == 200
    assert answer.content_type.startswith("text/plain")
    assert "homing_database_up 1.0" in answer.text
    database.close()


def test_a_killed_processs_streams_are_no_longer_counted(tmp_path: Path) -> None:
    gone, here = tmp_path / "gauge_livesum_4194305.db", tmp_path / f"gauge_livesum_{os.getpid()}.db"
    for file in (gone, here):
        file.touch()

    _forget_the_dead(tmp_path)

    assert list(tmp_path.iterdir()) == [here]


def test_how_long_a_provider_has_been_away_is_told(database: Database, clock: FakeClock) -> None:
    new_job(database, provider="renders")
    with database.write() as tx:
        for name in ("renders", "calm", "idle"):
            lock_account(tx, name)
        for name in ("renders", "idle"):
            update_account(tx, name, outage_at=tx.now, next_probe_at=tx.now)
    clock.advance(90)

    found = scrape(database)

    assert found["homing_provider_outage_seconds", "renders"] == 90
    assert found["homing_provider_outage_seconds", "calm"] == 0
    assert found["homing_provider_outage_seconds", "idle"] == 0  # nobody waits for it
