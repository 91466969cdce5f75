"""Its worker, kept running, and its queue, filled at a stroke."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import redis
import sqlalchemy as sa
from celery import Celery

from benchmarks.naive.models import Base, Event, Job, Transition
from benchmarks.processes import Running, start_command, wait_for_log
from benchmarks.signing import body_of
from benchmarks.stage import Stage

_QUEUE = "naive"
_PATIENCE_S = 120


@dataclass(slots=True)
class NaiveFleet:
    """One worker over one database."""

    worker: Running
    client: redis.Redis
    engine: sa.Engine
    app: Celery

    @classmethod
    def start(cls, stage: Stage, database_url: str) -> NaiveFleet:
        """Creates the tables and starts the worker: prefork, two children, Celery's defaults."""
        service = stage.redis.start_in(stage.new_folder())
        environ = {
            **stage.environ(database_url),
            "NAIVE_DATABASE_URL": database_url,
            "NAIVE_REDIS_URL": service.url,
        }
        engine = sa.create_engine(database_url)
        Base.metadata.create_all(engine)
        command = ["celery", "-A", "benchmarks.naive.worker:app", "worker", "-c", "2", "-Q", _QUEUE, "-l", "warning"]
        worker = start_command("naive", command, environ)
        wait_for_log(worker, "ready")
        return cls(worker, service.client(), engine, Celery("naive", broker=service.url))
