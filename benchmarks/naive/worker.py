"""Its Celery application, with Celery's defaults: ``celery -A benchmarks.naive.worker:app worker``."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

import sqlalchemy as sa
from celery import Celery

from benchmarks.naive.models import Event, Job, Outgoing, Transition, new_session

app = Celery("naive", broker=os.environ.get("NAIVE_REDIS_URL"))
app.conf.update(
    task_ignore_result=True,
    task_default_queue=os.environ.get("NAIVE_QUEUE", "naive"),
    broker_connection_retry_on_startup=True,
)


@app.task
def apply_event(event_id: int) -> None:
    """Moves the job an event speaks of."""
    with new_session() as session:
        event = session.get_one(Event, event_id)
        said = json.loads(event.body)
        job = session.scalars(sa.select(Job).where(Job.run == said["job"]).with_for_update()).one()
        if event.processed_at is None and job.state == "running":
            session.add(Transition(job_id=job.id, event_id=event.id, before=job.state, after=said["status"]))
            job.state, job.output, job.finished_at = said["status"], said["output"], datetime.now(UTC)
            job.version += 1
            session.add(Outgoing(job_id=job.id, type=f"job.{job.state}", data={"run": job.run, "output": job.output}))
            event.processed_at = datetime.now(UTC)
        session.commit()


@app.task
def nothing(event_id: int) -> None:
    """What a message costs that does no work."""
