"""Sends the demo's jobs, some of them twice: a client that never saw an answer asks again with the same key."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from homing.client.api import ApiClient
from homing.demo.stage import PROVIDER
from homing.screen import Document
from homing.simulator.job_lines import JobLine
from jobs.core.errors import Transient, Unavailable

#: Every so manieth job is sent twice.
TWICE_EVERY = 5
_AT_ONCE = 4
_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True)
class Submission:
    """One job as it was sent.

    Attributes:
        job_id: what the API answered first.
        repeated_ids: what it answered to the same key and body again.
    """

    job_id: str
    repeated_ids: tuple[str, ...] = field(default=())


def submit_all(
    client: ApiClient, inputs: Sequence[JobLine], *, run_id: str, called_off: threading.Event, insist: bool = False
) -> list[Submission]:
    """Send every job.

    Args:
        client: the API.
        inputs: what to send.
        run_id: tells the keys of this run from those of another in the same folder.
        called_off: when set, nothing more is sent.
        insist: go on asking where the API does not take one: its processes are being killed, and come back.

    Raises:
        Transient: the API did not take one.
    """

    def send(numbered: tuple[int, JobLine]) -> Submission:
        number, line = numbered
        if called_off.is_set():
            raise Unavailable("called off")
        key = f"{run_id}-{line.key or 'job'}-{number:04d}"
        body = {"provider": PROVIDER, "input": line.input, "metadata": {"demo": run_id, "number": str(number)}}
        times = 2 if number % TWICE_EVERY == 0 else 1
        ids = [_submit(client, body, key=key, called_off=called_off, insist=insist) for _ in range(times)]
        return Submission(ids[0], tuple(ids[1:]))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(send, enumerate(inputs)))


def _submit(client: ApiClient, body: Document, *, key: str, called_off: threading.Event, insist: bool) -> str:
    while True:
        try:
            return str(client.submit(body, key=key)["id"])
        except Transient:
            if not insist or called_off.wait(_AGAIN_S):
                raise
