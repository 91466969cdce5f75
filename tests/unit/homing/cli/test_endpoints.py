"""`homing endpoints` and `homing deliveries`: what each sends, and what a person sees."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.api import FakeApi
from tests.unit.homing.cli.conftest import Run

ENDPOINT: dict[str, Any] = {
    "id": "ep_1",
    "url": "https://example.com/hooks",
    "events": ["job.*"],
    "state": "enabled",
    "failing_since": None,
    "disabled_reason": None,
}
DELIVERY: dict[str, Any] = {
    "id": "dlv_1",
    "endpoint": "ep_1",
    "type": "job.succeeded",
    "job": "job_1",
    "state": "succeeded",
    "attempt_count": 2,
    "next_try_at": None,
}
ATTEMPTS = [
    {"at": "2026-01-01T00:00:00Z", "status": 500, "ms": 12, "error": "status_500", "excerpt": "oops"},
    {"at": "2026-01-01T00:00:05Z", "status": 200, "ms": 9, "error": None, "excerpt": None},
]


def test_add_sends_what_was_said_and_shows_the_secret(run: Run, api: FakeApi) -> None:
    api.on("POST /v1/endpoints", {**ENDPOINT, "secret": "whsec_new"}, 201)

    ran = run("endpoints", "add", "https://example.com/hooks", "--event", "job.failed", "--rate", "10/s")

    assert ran.code == 0
    assert "whsec_new" in ran.out
    assert api.asked[0].body == {"url": "https://example.com/hooks", "events": ["job.failed"], "rate": "10/s"}


def test_add_without_events_means_every_event_of_jobs(run: Run, api: FakeApi) -> None:
    api.on("POST /v1/endpoints", {**ENDPOINT, "secret": "whsec_new"}, 201)

    run("endpoints", "add", "https://example.com/hooks", "--json")

    assert api.asked[0].body["events"] == ["job.*"]


def test_list_shows_endpoints(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/endpoints", {"data": [ENDPOINT], "next_cursor": None})

    ran = run("endpoints", "list")

    assert "ep_1" in ran.out
    assert "job.*" in ran.out


@pytest.mark.parametrize(
    ("words", "route", "body"),
    [
        (["disable", "ep_1"], "disable", {}),
        (["enable", "ep_1"], "enable", {}),
        (["rotate", "ep_1"], "rotate-secret", {}),
        (["rotate", "ep_1", "--secret", "whsec_x"], "rotate-secret", {"secret": "whsec_x"}),
        (["recover", "ep_1", "--since", "2026-01-01T00:00:00Z"], "recover", {"since": "2026-01-01T00:00:00Z"}),
    ],
)
def test_each_command_asks_for_its_own(
    run: Run, api: FakeApi, words: list[str], route: str, body: dict[str, Any]
) -> None:
    api.on(f"POST /v1/endpoints/ep_1/{route}", ENDPOINT)

    ran = run("endpoints", *words, "--json")

    assert (ran.code, ran.document) == (0, ENDPOINT)
    assert api.asked[0].body == body


def test_deliveries_are_listed_by_what_was_asked_for(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/deliveries", {"data": [DELIVERY], "next_cursor": None})

    ran = run("deliveries", "list", "--endpoint", "ep_1", "--state", "succeeded")

    assert "dlv_1" in ran.out
    assert api.asked[0].query == {"endpoint": "ep_1", "state": "succeeded", "limit": "50"}


def test_a_delivery_is_shown_with_its_attempts(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/deliveries/dlv_1", {**DELIVERY, "attempts": ATTEMPTS})

    ran = run("deliveries", "show", "dlv_1")

    assert "status_500" in ran.out


def test_resend_says_that_it_is_due(run: Run, api: FakeApi) -> None:
    api.on("POST /v1/deliveries/dlv_1/resend", {**DELIVERY, "attempts": ATTEMPTS}, 202)

    assert run("deliveries", "resend", "dlv_1").out == "dlv_1: due now\n"
