"""Webhooks of ours, as their receiver proves them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook
from werkzeug.datastructures import Headers

from homing.client import ConfigError, SignatureError, verify_webhook
from jobs.clock import SystemClock
from webhooks.outgoing.signing import signature_headers

HOWTO = (Path(__file__).parents[4] / "docs" / "howto" / "wait_for_a_job.md").read_text(encoding="utf-8")
SECRET = "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTA="
OLDER = "whsec_b2xkZXIgb2xkZXIgb2xkZXIgb2xkZXI="
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVENT = {
    "id": "evt_1",
    "type": "job.succeeded",
    "schema_version": 1,
    "sequence": 4,
    "occurred_at": "2026-01-01T00:00:00.000000Z",
    "tenant": "acme",
    "data": {"job": {"id": "job_1"}},
}
BODY = json.dumps(EVENT).encode()


def signed(body: bytes = BODY, *, secret: str = SECRET, at: datetime = NOW) -> dict[str, str]:
    """Headers as the official package makes them."""
    signature = Webhook(secret).sign("evt_1", at, body.decode())
    return {
        "Webhook-Id": "evt_1",
        "Webhook-Timestamp": str(int(at.timestamp())),
        "Webhook-Signature": signature,
    }


def test_a_webhook_of_ours_is_an_event() -> None:
    event = verify_webhook(BODY, signed(), SECRET, now=NOW)

    assert (event.id, event.type, event.sequence, event.position) == ("evt_1", "job.succeeded", 4, None)
    assert event.data == EVENT["data"]


def test_any_frameworks_headers_will_do() -> None:
    assert verify_webhook(BODY, Headers(signed()), SECRET, now=NOW).id == "evt_1"


def test_while_a_secret_is_rotated_both_are_accepted() -> None:
    assert verify_webhook(BODY, signed(secret=OLDER), [SECRET, OLDER], now=NOW).id == "evt_1"


@pytest.mark.parametrize(
    ("body", "headers", "late"),
    [
        (BODY + b" ", signed(), 0),
        (BODY, signed(secret=OLDER), 0),
        (BODY, signed(), 301),
        (BODY, signed(), -301),
        (BODY, {}, 0),
        (BODY, {**signed(), "Webhook-Id": "evt_2"}, 0),
        (b"[]", signed(b"[]"), 0),
        (b"{}", signed(b"{}"), 0),
        (b"no", signed(b"no"), 0),
    ],
    ids=["changed", "another secret", "old", "early", "unsigned", "another id", "a list", "no event", "no JSON"],
)
def test_what_is_not_proven_or_no_event_is_refused(body: bytes, headers: dict[str, str], late: int) -> None:
    with pytest.raises(SignatureError):
        verify_webhook(body, headers, SECRET, now=NOW + timedelta(seconds=late))


def test_a_secret_that_cannot_be_one_is_said_without_quoting_it() -> None:
    with pytest.raises(ConfigError) as caught:
        verify_webhook(BODY, signed(), "whsec_!!", now=NOW)

    assert "whsec_!!" not in str(caught.value)


def test_without_a_secret_nothing_is_proven() -> None:
    with pytest.raises(SignatureError):
        verify_webhook(BODY, signed(), [], now=NOW)


@given(st.binary(max_size=60), st.dictionaries(st.sampled_from(list(signed())), st.text(max_size=30)))
def test_junk_is_a_refusal_and_nothing_else(body: bytes, headers: dict[str, str]) -> None:
    with pytest.raises(SignatureError):
        verify_webhook(body, headers, SECRET, now=NOW)


def test_what_a_fleet_signs_is_proven_with_either_secret_of_a_rotation() -> None:
    headers = signature_headers([SECRET, OLDER], body=BODY, event_id="evt_1", at=NOW)

    for secret in (SECRET, OLDER):
        assert verify_webhook(BODY, headers, secret, now=NOW).id == "evt_1"


def test_x_signature_alone_proves_no_time_and_is_not_enough() -> None:
    headers = signature_headers([SECRET], body=BODY, event_id="evt_1", at=NOW)
    only = {name: value for name, value in headers.items() if name.lower() == "x-signature"}

    assert only
    with pytest.raises(SignatureError):
        verify_webhook(BODY, only, SECRET, now=NOW)


def test_the_receiver_of_the_how_to_takes_an_event_once_and_a_forged_one_never(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names: dict[str, Any] = {"__name__": "receiver"}
    (sample,) = (
        text for text in re.findall(r"^```python\n(.*?)^```", HOWTO, re.MULTILINE | re.DOTALL) if "flask" in text
    )
    exec(sample, names)
    names["app"].config["SECRET"] = SECRET
    client = names["app"].test_client()
    headers = signed(at=SystemClock().now())

    answers = [client.post("/homing", data=BODY, headers=headers).status_code for _ in range(2)]
    forged = client.post("/homing", data=BODY + b" ", headers=headers)

    assert (answers, forged.status_code) == ([204, 204], 403)
    assert capsys.readouterr().out == "job.succeeded job_1\n"
