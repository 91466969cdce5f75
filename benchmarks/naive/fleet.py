"""Its worker, kept running, and its queue, filled at a stroke."""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import redis
import sqlalchemy as sa
from celery import Celery

from benchmarks.naive.models import Base, Event, Job, Transition
from benchmarks.processes import Running, start_command, wait_for_log
from benchmarks.signing import body_of
from benchmarks.stage import Stage
from tests.services.waiting import wait_until

_MARK = 987654321
_PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class NaiveFleet:
    """One worker over one database."""

    worker: Running
    client: redis.Redis
    engine: sa.Engine
    app: Celery
    queue: str
    environ: Mapping[str, str]

    @classmethod
    def start(cls, stage: Stage, database_url: str) -> NaiveFleet:
        """Creates the tables and starts the worker: prefork, two children, Celery's defaults."""
        queue = f"naive-{uuid.uuid4().hex[:8]}"
        environ = {"NAIVE_DATABASE_URL": database_url, "NAIVE_REDIS_URL": stage.redis.url, "NAIVE_QUEUE": queue}
        engine = sa.create_engine(database_url)
        Base.metadata.create_all(engine)
        command = [
            "celery",
            "-A",
            "benchmarks.naive.worker:app",
            "worker",
            "-c",
            "2",
            "-Q",
            queue,
            "-l",
            "info",
            "-n",
            f"{queue}@%h",
        ]
        worker = start_command("naive", command, {**stage.environ(database_url), **environ})
        return cls(worker, stage.redis.client(), engine, Celery("naive", broker=stage.redis.url), queue, environ)

    def wait_until_ready(self) -> None:
        """Until the worker takes messages."""
        wait_for_log(self.worker, " ready.")

    def stop(self) -> None:
        """Ends the worker."""
        self.worker.stop()
        self.engine.dispose()

    def add_jobs(self, runs: Iterable[str]) -> None:
        """Running jobs."""
        with self.engine.begin() as connection:
            connection.execute(sa.insert(Job), [{"run": run, "state": "running", "version": 1} for run in runs])

    def drain(self, count: int) -> float:
        """Events a second, from a queue full of them to the last committed effect."""
        event_ids = self._fill(count)
        before = self._applied()
        begin = time.perf_counter()
        self._flood("benchmarks.naive.worker.apply_event", event_ids)
        _wait(lambda: self._applied() - before >= count)
        return count / (time.perf_counter() - begin)

    def messages(self, count: int) -> float:
        """Messages a second that do nothing, from a full queue to an empty one."""
        begin = time.perf_counter()
        self._flood("benchmarks.naive.worker.nothing", range(count))
        _wait(lambda: not self.client.llen(self.queue) and not self.client.hlen("unacked"))
        return count / (time.perf_counter() - begin)

    def _fill(self, count: int) -> list[int]:
        tag = uuid.uuid4().hex[:8]
        names = [f"run-{tag}-{number}" for number in range(count)]
        self.add_jobs(names)
        with self.engine.begin() as connection:
            rows = [{"delivery_id": f"msg-{name}", "body": body_of(name, f"msg-{name}")} for name in names]
            connection.execute(sa.insert(Event), rows)
            of_these = sa.select(Event.id).where(Event.delivery_id.like(f"msg-run-{tag}-%"))
            return list(connection.scalars(of_these))

    def _applied(self) -> int:
        with self.engine.connect() as connection:
            return int(connection.scalar(sa.select(sa.func.count()).select_from(Transition)) or 0)

    def _flood(self, task: str, arguments: Iterable[int]) -> None:
        """Puts messages into the queue as Celery would have, in one go, so that no publisher shares the time."""
        template = self._template(task)
        known = template["headers"]["id"], template["properties"]["delivery_tag"]
        text = json.dumps(template)
        messages = []
        for argument in arguments:
            own = text
            for part in known:
                own = own.replace(part, str(uuid.uuid4()))
            messages.append(own.replace(_body(_MARK), _body(argument)))
        self.client.lpush(self.queue, *messages)

    def _template(self, task: str) -> dict[str, Any]:
        """A message as Celery sends it, caught in a queue nobody reads."""
        self.app.send_task(task, (_MARK,), queue="template")
        message: Any = self.client.rpop("template")
        return dict(json.loads(message))


def _body(argument: int) -> str:
    embed = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
    return base64.b64encode(json.dumps([[argument], {}, embed]).encode()).decode()


def _wait(happened: Callable[[], bool]) -> None:
    wait_until(happened, within_s=_PATIENCE_S, what="the naive worker's end of the queue", every_s=0.05)
