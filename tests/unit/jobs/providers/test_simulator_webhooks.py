"""What the simulator's adapter makes of an event's body."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.clock import FakeClock
from jobs.config.providers import ProviderConfig
from jobs.core.errors import Unusable
from jobs.core.states import JobState
from jobs.net.http import HttpClient
from jobs.providers.port import WebhookReport
from jobs.providers.simulator import SimulatorProvider


def read(body: Any) -> WebhookReport:
    entry = ProviderConfig(adapter="simulator", base_url="http://127.0.0.1:1", webhook_scheme="standard-webhooks")
    return SimulatorProvider(entry, HttpClient(), FakeClock()).read_webhook(body, {})


def test_an_event_is_read_whole() -> None:
    event = {
        "id": "evt_1",
        "job": "p-123",
        "status": "failed",
        "progress": 0.5,
        "output": None,
        "error": {"code": "oom", "message": "bad byte"},
        "artifacts": [{"url": "https://x/1"}],
        "occurred_at": "2026-01-01T00:00:00Z",
    }

    webhook = read(event)

    assert webhook.delivery_id == "evt_1"
    assert webhook.report is not None
    assert (webhook.report.provider_job_id, webhook.report.state) == ("p-123", JobState.FAILED)
    assert webhook.report.error is not None
    assert webhook.report.error.message == "bad byte"
    assert webhook.report.links[0].url == "https://x/1"


@pytest.mark.parametrize("useless", [None, "", 0, 17, {"a": 1}, "x" * 10_000, [], True])
def test_a_useless_delivery_id_counts_as_none(useless: object) -> None:
    """F12 b"""
    webhook = read({"id": useless, "job": "p-1", "status": "succeeded"})

    assert webhook.delivery_id is None
    assert webhook.report is not None


@pytest.mark.parametrize(
    "event",
    [
        {"id": "evt_1", "type": "billing.balance.updated"},
        {"id": "evt_1", "job": None, "status": "succeeded"},
        {"id": "evt_1", "job": "p-1"},
        {"id": "evt_1", "job": "p-1", "status": "succeeded", "livemode": False},
    ],
)
def test_an_event_of_no_interest_says_why(event: dict[str, object]) -> None:
    """F20"""
    webhook = read(event)

    assert webhook.report is None
    assert webhook.ignored_because
    assert webhook.delivery_id == "evt_1"


def test_an_unknown_word_is_reported_and_not_guessed() -> None:
    """F24"""
    report = read({"job": "p-1", "status": "aborted"}).report

    assert report is not None
    assert (report.state, report.unknown_status) == (None, "aborted")


@pytest.mark.parametrize("job", [17, "", [], {"id": "p-1"}, True, "p" * 256])
def test_an_event_whose_job_is_no_id_has_the_wrong_shape(job: object) -> None:
    """It may be the end of a run: kept for a person, not thrown away like what is of no interest."""
    with pytest.raises(Unusable):
        read({"id": "evt_1", "job": job, "status": "succeeded"})


@pytest.mark.parametrize("body", [None, [], "text", 17, True])
def test_a_body_that_is_no_object_is_unusable(body: object) -> None:
    with pytest.raises(Unusable):
        read(body)
