"""Defects in a fleet's own processes that last until they are mended, and retry plans that end within seconds.

Part of the plugin. The plans are as long as the longest outage the harness causes, so that nothing but what ails
exhausts them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from jobs.core.events import Event
from jobs.providers.simulator import SimulatorProvider
from jobs.services import handling, relay_batches, work
from jobs.services.artifacts import fetching as artifacts
from tests.crashing.ailments import Ward
from webhooks.incoming.applying import batch, failing
from webhooks.incoming.applying.work import read_work
from webhooks.outgoing import retrying

ENDS = ("job.succeeded", "job.failed", "job.canceled")
_SECOND = timedelta(seconds=1)


def shorten_plans() -> None:
    """Of everything that ends in a dead letter after some tries."""
    work._RETRY_CAP = _SECOND
    work._BROKEN_BASE = _SECOND
    artifacts._RETRY_BASE = artifacts._RETRY_CAP = _SECOND
    handling.WAITS_S = (1,) * len(handling.WAITS_S)  # type: ignore[assignment]  # as many as there are
    handling.MAX_TRIES = 4  # a sweep comes by every five seconds only
    failing._BASE = _SECOND
    retrying.WAITS = (_SECOND,) * len(retrying.WAITS)  # type: ignore[assignment]  # as many as there are


def wrap_defects(ward: Ward) -> None:
    """Has each break on the work of its entry, while that is ill."""
    status, wanting = SimulatorProvider.status, relay_batches.Batch._wanting

    def broken_status(self: SimulatorProvider, provider_job_id: str) -> Any:
        report = status(self, provider_job_id)
        _break(ward, "ail_poll", provider_job_id.startswith("ail_poll"))
        return report

    def broken_wanting(self: Any, row: Any) -> list[str]:
        _break(ward, "ail_event", row["provider"] == "ail_event" and row["type"] in ENDS)
        return wanting(self, row)

    def broken_read(runtime: Any, row: Any, raw: bytes) -> Any:
        _break(ward, "ail_inbox", row["provider"] == "ail_inbox" and raw.startswith(b"{"))
        return read_work(runtime, row, raw)

    SimulatorProvider.status = broken_status  # type: ignore[method-assign]
    relay_batches.Batch._wanting = broken_wanting  # type: ignore[method-assign]
    vars(batch)["read_work"] = broken_read


def failing_for(ward: Ward) -> Callable[[Event], None]:
    """What a handler calls where it is to fail, for the events of one entry."""

    def fail(event: Event) -> None:
        job = event.data["job"]
        _break(ward, "ail_handler", isinstance(job, dict) and job["provider"] == "ail_handler")

    return fail


def _break(ward: Ward, name: str, is_its: bool) -> None:
    if is_its and ward.is_ill(name):
        raise RuntimeError(f"{name} has not been mended")
