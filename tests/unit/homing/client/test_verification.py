"""Webhooks of ours, as their receiver proves them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook
from werkzeug.datastructures import Headers

from homing.client import ConfigError, SignatureError, verify_webhook

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
