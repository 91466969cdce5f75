"""F58 with real processes: a webhook that kills its worker, among ten that do not."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from jobs.ids import new_id
from jobs.storage.database import Database
from jobs.storage.schema import dead_letters
from tests.e2e.test_sweeping import Pair
from tests.services.redis import RedisService
from tests.services.waiting import wait_until
from webhooks.incoming.schema import inbox_events

_HERE = Path(__file__).parent
_WORKER = ["worker", "-c", "2", "--without-mingle", "--without-gossip", "-Q", "events,reconcile,handlers"]
_CONFIG = """
[plugins]
modules = ["deadly_plugin"]
[providers.hooks]
adapter = "events"
webhook_scheme = "hmac-body"
webhook_secrets = ["0123456789abcdef0123456789abcdef"]
"""


@pytest.fixture
def pair(tmp_path: Path, sqlite_url: str) -> Iterator[Pair]:
    """Beat and a worker of two children, over a Redis and a database of their own."""
    redis = RedisService.start_in(tmp_path / "redis")
    (tmp_path / "homing.toml").write_text(_CONFIG)
    environment = {
        **os.environ,
        "HOMING_DATA_DIR": str(tmp_path),
        "HOMING_DATABASE_URL": sqlite_url,
        "HOMING_REDIS_URL": redis.url,
        "PYTHONPATH": os.pathsep.join([str(_HERE), str(_HERE.parents[1])]),
        "TOLD": str(tmp_path / "told"),
        "STARTS": str(tmp_path / "starts"),
    }
    pair = Pair(tmp_path, redis, Database.connect(sqlite_url), environment)
    yield pair
    pair.stop()


def receive(pair: Pair, raw: bytes, *, number: int) -> str:
    """A stored, acknowledged webhook."""
    with pair.database.write() as tx:
        row = {
            "id": new_id("evt", at=tx.now + timedelta(milliseconds=number)),
            "provider": "hooks",
            "dedupe_key": f"d-{number}",
            "scheme": "hmac-body",
            "secret_index": 0,
            "raw": raw,
            "headers": {},
            "digest": hashlib.sha256(raw).hexdigest(),
            "status": "accepted",
            "duplicates": 0,
            "tries": 0,
            "failures": 0,
            "next_try_at": tx.now,
            "received_at": tx.now,
        }
        tx.execute(sa.insert(inbox_events).values(row))
        return str(row["id"])


def statuses(pair: Pair) -> dict[str, str]:
    with pair.database.read() as tx:
        return {row["id"]: row["status"] for row in tx.rows(sa.select(inbox_events.c.id, inbox_events.c.status))}


def letters(pair: Pair) -> list[dict[str, Any]]:
    with pair.database.read() as tx:
        return tx.rows(sa.select(dead_letters))


def lines(pair: Pair, name: str) -> list[str]:
    path = pair.folder / name
    return path.read_text().split() if path.exists() else []


@pytest.mark.timeout(360)
def test_a_webhook_that_kills_its_worker_holds_up_nobody_and_is_a_dead_letter_after_three_starts(pair: Pair) -> None:
    """F58: X in the dead letters after at most three starts, with waits between; the ten are processed meanwhile."""
    killer = receive(pair, b'{"type":"poison"}', number=0)
    good = [receive(pair, b'{"type":"fine"}', number=number) for number in range(1, 11)]

    pair.start("worker", *_WORKER)
    pair.start("beat", "beat", "--pidfile=")
    try:
        wait_until(lambda: [statuses(pair)[each] for each in good] == ["applied"] * 10, within_s=150, what="the ten")
        at_that_time = statuses(pair)[killer]
        wait_until(lambda: statuses(pair)[killer] == "dead", within_s=120, what="the end of the killer")
        wait_until(lambda: len(set(lines(pair, "told"))) == 10, within_s=30, what="the handlers of the ten")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{lines(pair, 'starts')}\n{pair.logs()}") from None

    starts = [float(line) for line in lines(pair, "starts")]
    assert at_that_time == "accepted"
    assert len(starts) == 3
    assert all(later - earlier > 2 for earlier, later in pairwise(starts))
    (letter,) = letters(pair)
    assert (letter["kind"], letter["ref"], letter["attempts"]) == ("inbox", killer, 3)
