"""Rows and values with every default filled in, so that a test shows only what it is about."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from jobs.core.observations import Observation, Source
from jobs.core.policy import Policy
from jobs.core.states import JobState
from jobs.ids import new_id
from jobs.services.observe import Observer
from jobs.storage.attempts import insert_attempt
from jobs.storage.database import Database, Transaction
from jobs.storage.jobs import get_job, insert_job

T = datetime(2026, 1, 1, tzinfo=UTC)
PROVIDER = "renders"
TENANT = "acme"


def insert_test_job(tx: Transaction, **columns: Any) -> Mapping[str, Any]:
    """A pending job with its first attempt, due to be submitted; ``columns`` override."""
    now = tx.now
    row = {
        "id": new_id("job", at=now),
        "tenant": TENANT,
        "provider": PROVIDER,
        "input": {"model": "video", "prompt": "a heron at dawn"},
        "metadata": {},
        "deadline_s": 3600.0,
        "deadline_at": now + timedelta(hours=1),
        "next_alarm_at": now + timedelta(hours=1),
        "next_submit_at": now,
        "created_at": now,
        **columns,
    }
    insert_job(tx, row)
    insert_attempt(tx, job_id=row["id"], provider=row["provider"], number=row.get("attempt", 1), at=now)
    return get_job(tx, row["id"])


def new_job(database: Database, **columns: Any) -> Mapping[str, Any]:
    """The same, committed."""
    with database.write() as tx:
        return insert_test_job(tx, **columns)


def seen(state: JobState | None = None, **facts: Any) -> Observation:
    """What a webhook about attempt 1 and run ``p-1`` says."""
    return Observation(
        **{"source": Source.WEBHOOK, "at": T, "attempt": 1, "provider_job_id": "p-1", "state": state, **facts}
    )


def an_observer(**policies: Policy) -> Observer:
    """An observer with the default policy for :data:`PROVIDER`, unless told otherwise."""
    return Observer({PROVIDER: Policy(), **policies}, random.Random(7))
