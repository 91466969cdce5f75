"""The demo's handler: one call to the effect sink for each end of a job.

An ordinary plugin, as a user would write one. The sink counts every call, so a job whose end had its effect twice,
or never, is seen.
"""

from __future__ import annotations

import os

import requests

from jobs.core.events import Event
from jobs.handlers import on

#: Where the sink listens; set by the demo for the fleet it starts.
SINK_VARIABLE = "DEMO_SINK_URL"
_TIMEOUT_S = 20  # a call given up too early would be made again, and counted twice


@on("job.succeeded", "job.failed", "job.canceled", name="demo.effects")
def report_end(event: Event) -> None:
    """Tell the sink that a job has ended."""
    job = event.data["job"]
    assert isinstance(job, dict)
    call = {"event": event.id, "job": job["id"], "type": event.type}
    with requests.Session() as session:
        session.trust_env = False
        session.post(os.environ[SINK_VARIABLE], json=call, timeout=_TIMEOUT_S).raise_for_status()
