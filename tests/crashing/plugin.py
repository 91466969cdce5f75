"""What a fleet under test loads, as a plugin of its TOML file: the points, and handlers whose effects are counted.

It kills the process it is in, so it is loaded by nobody who did not ask for it twice: its name in ``[plugins]``, and
the folder in the environment; and never in production.
"""

from __future__ import annotations

import os
from pathlib import Path

import requests
import sqlalchemy as sa

from jobs.core.events import Event
from jobs.handlers import on
from tests.crashing.ailments import Ward
from tests.crashing.control import SINK_VARIABLE, VARIABLE, WARD, Trigger
from tests.crashing.defects import ENDS, failing_for, shorten_plans, wrap_defects
from tests.crashing.doors import wrap_all

#: Without a rule against doubles: a second effect must be seen, not prevented.
EFFECTS = sa.Table(
    "crash_effects", sa.MetaData(), sa.Column("event_id", sa.Text, nullable=False), sa.Column("job_id", sa.Text)
)
_TIMEOUT_S = 20


def _trigger() -> Trigger:
    if os.environ.get("HOMING_ENV") == "production":
        raise RuntimeError("the crash points kill processes; they do not load where HOMING_ENV is production")
    return Trigger(Path(os.environ[VARIABLE]))


trigger = _trigger()
wrap_all(trigger)
_ward = Ward(Path(os.environ[VARIABLE]) / WARD)
fail_where_it_ails = failing_for(_ward)
wrap_defects(_ward)
shorten_plans()


@on(*ENDS, name="crash.plain")
def tell_sink(event: Event) -> None:
    """At least once, under one event id."""
    trigger.hit("handler.begun plain")
    fail_where_it_ails(event)
    call = {"event": event.id, "job": _job_of(event), "type": event.type}
    with requests.Session() as session:
        session.trust_env = False
        session.post(os.environ[SINK_VARIABLE], json=call, timeout=_TIMEOUT_S).raise_for_status()
    trigger.hit("handler.acted plain")


@on(*ENDS, name="crash.transactional", transactional=True)
def write_effect(event: Event, connection: sa.Connection) -> None:
    """Exactly once: it commits with the handler's mark."""
    trigger.hit("handler.begun transactional")
    connection.execute(EFFECTS.insert().values(event_id=event.id, job_id=_job_of(event)))
    fail_where_it_ails(event)
    trigger.hit("handler.acted transactional")


def _job_of(event: Event) -> str:
    job = event.data["job"]
    assert isinstance(job, dict)
    return str(job["id"])
