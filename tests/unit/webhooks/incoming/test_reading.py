"""What an event says: the same at the door and later, and never an exception of another kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import Unusable
from jobs.core.observations import Json
from jobs.core.states import JobState
from jobs.providers.port import Capabilities, Report, WebhookReport
from webhooks.incoming.reading import read_event
from webhooks.incoming.schema import InboxStatus


class Adapter:
    """Reads ``{"id", "job", "state"}``; fails on demand."""

    capabilities = Capabilities()

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.seen: list[Json] = []

    def read_webhook(self, body: Any, headers: Mapping[str, str]) -> WebhookReport:
        self.seen.append(body)
        if self.error is not None:
            raise self.error
        if not isinstance(body, dict):
            raise Unusable("no object")
        if "job" not in body:
            return WebhookReport(None, body.get("id"), ignored_because="names no job")
        return WebhookReport(Report(body["job"], JobState.RUNNING), body.get("id"))


def read(body: object, adapter: Adapter | None = None, *, limit_bytes: int = 10_000) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_event(adapter or Adapter(), raw, {}, limit_bytes=limit_bytes)  # type: ignore[arg-type]


def test_an_event_about_a_run_is_accepted() -> None:
    reading = read({"id": "evt_1", "job": "p-1"})

    assert (reading.status, reading.delivery_id, reading.provider_job_id) == (InboxStatus.ACCEPTED, "evt_1", "p-1")
    assert reading.claim is JobState.RUNNING


def test_an_event_of_no_interest_is_ignored_with_its_reason() -> None:
    reading = read({"id": "evt_1"})

    assert (reading.status, reading.reason, reading.delivery_id) == (InboxStatus.IGNORED, "names no job", "evt_1")


@given(raw=st.binary(max_size=300))
def test_any_bytes_are_read_or_quarantined(raw: bytes) -> None:
    assert read(raw).status in InboxStatus


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError(), TypeError(), Unusable("odd")])
def test_whatever_an_adapter_raises_quarantines_the_event(error: Exception) -> None:
    reading = read({"job": "p-1"}, Adapter(error))

    assert (reading.status, reading.report) == (InboxStatus.QUARANTINED, None)
    assert reading.reason


def test_the_adapter_sees_clean_text() -> None:
    """F21."""
    adapter = Adapter()

    read(b'{"job":"p\\u0000","a\\u0000":"\\ud800"}', adapter)

    assert adapter.seen == [{"job": "p\ufffd", "a\ufffd": "\ufffd"}]


@pytest.mark.parametrize("job", ["", "x" * 256, 17, [], {}])
def test_a_run_that_could_be_no_key_is_unusable(job: object) -> None:
    assert read({"job": job}).status is InboxStatus.QUARANTINED


@pytest.mark.parametrize("delivery_id", [None, "", 0, 17, {}, [], "x" * 256, True])
def test_a_useless_delivery_id_counts_as_none(delivery_id: object) -> None:
    """F12 (b)."""
    assert read({"id": delivery_id, "job": "p-1"}).delivery_id is None
