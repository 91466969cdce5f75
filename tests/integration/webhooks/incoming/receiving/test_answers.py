"""The answer table of the receiver, through both doors, over both databases."""

from __future__ import annotations

import gzip
import io
import json
from datetime import timedelta
from typing import Any

import pytest

from jobs.clock import FakeClock
from jobs.core.signatures import parse_secrets, sign
from jobs.storage.database import Database
from tests.integration.webhooks.incoming.world import World, a_world, an_entry, call, says
from tests.vectors import B1, B2, B3, B4, NOW, WHSEC_SECRET, T

LIMIT = 5 * 2**20


def test_an_authentic_event_is_acknowledged_after_its_row_is_committed(either_door: World) -> None:
    reply = either_door.deliver(says("succeeded"))

    row = either_door.event()
    assert (reply.status, reply.json) == (200, {"status": "accepted", "event": row["id"]})
    assert reply.headers["Content-Type"] == "application/json"
    assert row["status"] == "accepted"


def test_ten_copies_are_one_row_one_transition_and_one_effect(either_door: World) -> None:
    job_id, _ = either_door.submitted_job()

    replies = [either_door.deliver(says("succeeded")) for _ in range(10)]
    either_door.drain()
    late = either_door.deliver(says("succeeded"))

    row = either_door.event()
    assert [reply.said for reply in replies] == ["accepted", *["duplicate"] * 9]
    assert {reply.json["event"] for reply in [*replies, late]} == {row["id"]}
    assert late.said == "duplicate"
    assert (row["status"], row["duplicates"]) == ("applied", 10)
    assert either_door.history(job_id) == [("pending", "succeeded", True)]
    assert either_door.told(job_id) == ["job.submitted", "job.succeeded"]


@pytest.mark.parametrize(
    "path", ["/webhooks/renders", "/webhooks/renders/", "/webhooks/renders/tok", "/webhooks/renders/tok/"]
)
def test_a_trailing_slash_changes_nothing_and_nothing_redirects(small_door: World, path: str) -> None:
    reply = small_door.deliver(says("succeeded"), path=path)

    assert reply.said == "accepted"
    assert small_door.event()["token"] == ("tok" if "tok" in path else None)


@pytest.mark.parametrize("path", ["/webhooks/nobody", "/webhooks/", "/webhooks/renders/a/b", "/webhooks//renders"])
def test_an_unknown_provider_or_path_is_404(small_door: World, path: str) -> None:
    reply = small_door.deliver(says("succeeded"), path=path)

    assert reply.status == 404
    assert reply.json["status"] == 404
    assert small_door.events() == []


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
def test_other_methods_are_405(small_door: World, method: str) -> None:
    reply = small_door.deliver(says("succeeded"), method=method)

    assert reply.status == 405
    assert "POST" in reply.headers["Allow"]
    assert small_door.events() == []


def test_a_provider_without_a_secret_is_503_and_never_believed(small_door: World) -> None:
    """F03."""
    reply = small_door.deliver(says("succeeded"), provider="silent")

    assert reply.status == 503
    assert int(reply.headers["Retry-After"]) >= 1
    assert small_door.events() == []


FORGED: dict[str, dict[str, str]] = {
    "no header": {},
    "empty": {"webhook-signature": ""},
    "one space": {"webhook-signature": " "},
    "no value": {"webhook-signature": "v1,"},
    "another version": {"webhook-signature": "v9,abc"},
    "another body's": {"webhook-signature": f"v1,{B2.w}"},
    "not ASCII": {"webhook-signature": "v1,\xe9"},
    "8 KB": {"webhook-signature": "v1," + "A" * 8192},
    "too old": {"webhook-timestamp": str(T - 301)},
    "ahead": {"webhook-timestamp": str(T + 301)},
    "milliseconds": {"webhook-timestamp": str(T * 1000)},
    "signed": {"webhook-timestamp": "-1"},
    "a fraction": {"webhook-timestamp": "1767225600.5"},
    "underscores": {"webhook-timestamp": "1_767_225_600"},
    "5,000 digits": {"webhook-timestamp": "1" * 5000},
}


def forged(change: dict[str, str]) -> dict[str, str]:
    """B1's headers, with one of them wrong; a wrong time is signed rightly."""
    headers = {**B1.standard_webhooks, **change} if change else {}
    if "webhook-timestamp" in change:
        import base64
        import hashlib
        import hmac

        signed = b".".join([headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), B1.body])
        digest = hmac.digest(b"field-log-test-secret-01", signed, hashlib.sha256)
        headers["webhook-signature"] = "v1," + base64.b64encode(digest).decode()
    return headers


def test_every_fault_of_a_signature_has_one_answer(small_door: World, capsys: pytest.CaptureFixture[str]) -> None:
    """F02, F03, F04: 403, the same bytes each time, nothing secret in answer or log, nothing stored."""
    replies = {
        name: call(small_door.app, "/webhooks/renders", body=B1.body, headers=forged(change))
        for name, change in FORGED.items()
    }

    assert {name: reply.status for name, reply in replies.items()} == dict.fromkeys(FORGED, 403)
    assert len({reply.body for reply in replies.values()}) == 1
    assert len({json.dumps(sorted(reply.headers.items())) for reply in replies.values()}) == 1
    output = capsys.readouterr()
    for secret in (B1.w, WHSEC_SECRET, WHSEC_SECRET.removeprefix("whsec_"), "field-log-test-secret"):
        assert secret not in next(iter(replies.values())).body.decode()
        assert secret not in output.out + output.err
    assert "Traceback" not in output.out + output.err
    assert small_door.events() == []


@pytest.mark.parametrize(
    ("provider", "header", "values"),
    [
        ("stripy", "stripe-signature", ["t=1767225600,v1=\xe9", "t=,v1=", f"v1={B1.s}", f"t=abc,v1={B1.s}", ""]),
        ("plain", "x-signature", ["sha256=\xe9\xff", "sha256=", "sha1=" + "a" * 40, " ", "sha256=" + B2.h]),
    ],
)
def test_the_other_schemes_refuse_alike(small_door: World, provider: str, header: str, values: list[str]) -> None:
    """F02, F03."""
    replies = [call(small_door.app, f"/webhooks/{provider}", body=B1.body, headers={header: value}) for value in values]

    assert {reply.status for reply in replies} == {403}
    assert len({reply.body for reply in replies}) == 1


@pytest.mark.parametrize("shift_s", [-299, 5])
def test_a_clock_that_is_a_little_off_is_believed(small_door: World, shift_s: int) -> None:
    """F04."""
    reply = small_door.deliver(says("succeeded"), signed_at=NOW + timedelta(seconds=shift_s))

    assert reply.said == "accepted"


def test_the_signature_is_over_the_bytes_on_the_wire(either_door: World) -> None:
    """F01: odd blanks, escapes and forms; another spelling of the same JSON is not what was signed."""
    headers = {"content-type": "application/x-www-form-urlencoded"}

    good = call(either_door.app, "/webhooks/stripy", body=B2.body, headers=B2.stripe)
    respelled = json.dumps(json.loads(B2.body)).encode()
    bad = call(either_door.app, "/webhooks/stripy", body=respelled, headers=B2.stripe)
    form = call(
        either_door.app,
        "/webhooks/plain",
        body=B4.body,
        headers=B4.hmac_body,
        environ={"CONTENT_TYPE": headers["content-type"]},
    )

    assert (good.status, bad.status, form.status) == (200, 403, 200)
    stored = {row["provider"]: bytes(row["raw"]) for row in either_door.events()}
    assert stored == {"stripy": B2.body, "plain": B4.body}
    assert (len(stored["stripy"]), len(stored["plain"])) == (90, 42)


UNUSABLE = {
    "nothing": B3.body,
    "not JSON": b"hello",
    "a list": b"[]",
    "a text": b'"succeeded"',
    "not UTF-8": b'{"id":"\xff\xfe"}',
    "a raw NUL": b'{"id":"evt_1\x00","job":"p-123","status":"failed"}',
    "NaN": b'{"id":"evt_1","job":"p-123","status":"failed","cost":NaN}',
    "deep": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "two values": b"{}{}",
    "a job id of 300": json.dumps({"job": {"id": "x"}, "status": 1, "id": []}).encode()[:-1],
}


@pytest.mark.parametrize("body", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_signed_but_unusable_is_kept_and_shown_to_a_person(either_door: World, body: bytes) -> None:
    """F03: even an empty body that is signed is authentic."""
    reply = either_door.deliver(body)
    again = either_door.deliver(body)
    either_door.drain()

    row = either_door.event()
    (letter,) = either_door.letters()
    assert (reply.said, again.said) == ("quarantined", "duplicate")
    assert (row["status"], bytes(row["raw"])) == ("quarantined", body)
    assert row["reason"]
    assert (letter["kind"], letter["ref"], letter["reason"]) == ("inbox", row["id"], row["reason"])


def test_an_unusable_copy_does_not_take_the_place_of_the_usable_one(either_door: World) -> None:
    job_id, _ = either_door.submitted_job()

    broken = either_door.deliver(b"{", delivery_id="msg_1")
    whole = either_door.deliver(says("succeeded"), delivery_id="msg_1")
    either_door.drain()

    assert (broken.said, whole.said) == ("quarantined", "accepted")
    assert either_door.job(job_id)["state"] == "succeeded"


def test_an_adapter_that_fails_loses_nothing(either_door: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("status")

    monkeypatch.setattr(type(either_door.runtime.providers["renders"].adapter), "read_webhook", fail)

    assert either_door.deliver(says("succeeded")).said == "quarantined"
    assert "KeyError" in either_door.event()["reason"]


def test_a_body_of_the_limit_is_taken_and_one_byte_more_is_413(either_door: World) -> None:
    padding = b" " * (LIMIT - len(B1.body))

    taken = either_door.deliver(B1.body + padding, delivery_id="msg_1")
    refused = either_door.deliver(B1.body + padding + b" ", delivery_id="msg_2")

    assert (taken.status, refused.status) == (200, 413)
    assert len(either_door.events()) == 1


class Endless(io.RawIOBase):
    """A body that never ends; says how much of it was read."""

    def __init__(self) -> None:
        self.read_bytes = 0

    def read(self, size: int = -1, /) -> bytes:
        assert size > 0
        self.read_bytes += size
        return b"x" * size


def test_a_body_without_length_is_read_to_its_end(either_door: World) -> None:
    body = B1.body
    chunked = {"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}

    reply = call(either_door.app, "/webhooks/renders", body=body, headers=B1.standard_webhooks, environ=chunked)

    assert reply.said == "accepted"
    assert bytes(either_door.event()["raw"]) == body


def test_an_endless_body_is_413_at_the_limit(small_door: World) -> None:
    """F40."""
    body = Endless()
    environ = {"CONTENT_LENGTH": "", "wsgi.input_terminated": True, "wsgi.input": body}

    reply = call(small_door.app, "/webhooks/renders", headers=B1.standard_webhooks, environ=environ)

    assert reply.status == 413
    assert body.read_bytes <= LIMIT + 1


def test_an_announced_length_beyond_the_limit_is_413_before_a_byte_is_read(small_door: World) -> None:
    """F40."""
    body = Endless()
    environ = {"CONTENT_LENGTH": str(10**13), "wsgi.input": body}

    reply = call(small_door.app, "/webhooks/renders", headers=B1.standard_webhooks, environ=environ)

    assert (reply.status, body.read_bytes) == (413, 0)


@pytest.mark.parametrize("length", ["-1", "ten", "\xb2", "1_0", "9" * 5000])
def test_a_length_that_is_none_is_refused(small_door: World, length: str) -> None:
    reply = small_door.deliver(says("succeeded"), environ={"CONTENT_LENGTH": length})

    assert reply.status in (400, 413)
    assert small_door.events() == []


def test_a_body_cut_off_is_400(small_door: World) -> None:
    reply = small_door.deliver(says("succeeded"), environ={"CONTENT_LENGTH": "1000"})

    assert reply.status == 400
    assert small_door.events() == []


def test_gzip_is_taken_and_the_signature_is_over_what_was_sent(either_door: World) -> None:
    job_id, _ = either_door.submitted_job()
    packed = gzip.compress(json.dumps(says("succeeded")).encode())

    reply = either_door.deliver(packed, headers={"content-encoding": "gzip"})
    either_door.drain()

    assert reply.said == "accepted"
    assert bytes(either_door.event()["raw"]) == packed
    assert either_door.job(job_id)["state"] == "succeeded"


def test_gzip_that_unfolds_beyond_the_limit_is_413(small_door: World) -> None:
    """F40 (f): 200 MiB of zeros in about 200 kB."""
    bomb = gzip.compress(bytes(200 * 2**20), compresslevel=9)
    assert len(bomb) < 300_000

    reply = small_door.deliver(bomb, headers={"content-encoding": "gzip"})

    assert reply.status == 413
    assert small_door.events() == []


def test_gzip_that_is_none_is_authentic_and_unusable(either_door: World) -> None:
    reply = either_door.deliver(b"not gzip", headers={"content-encoding": "gzip"})

    assert reply.said == "quarantined"


@pytest.mark.parametrize("coding", ["gzip, gzip", "br", "deflate", "zstd", "\xe9"])
def test_other_encodings_are_415(small_door: World, coding: str) -> None:
    """F40 (d)."""
    reply = small_door.deliver(says("succeeded"), headers={"content-encoding": coding})

    assert reply.status == 415
    assert small_door.events() == []


def test_headers_are_kept_as_they_came_without_credentials(either_door: World) -> None:
    sent = {"x-odd": "caf\xe9 \x80", "authorization": "Bearer abc", "cookie": "session=1"}

    either_door.deliver(says("succeeded"), headers=sent)

    headers = either_door.event()["headers"]
    assert headers["x-odd"] == "caf\xe9 \x80"
    assert headers["webhook-id"] == "msg_1"
    assert headers["content-type"] == "application/json"
    assert (headers["authorization"], headers["cookie"]) == ("[removed]", "[removed]")


NO_INTEREST = {
    "another type": {"id": "evt_1", "type": "billing.balance.updated", "data": {}},
    "no job": {"id": "evt_1", "status": "succeeded"},
    "test mode": {**says("succeeded"), "livemode": False},
}


@pytest.mark.parametrize("body", NO_INTEREST.values(), ids=NO_INTEREST.keys())
def test_events_of_no_interest_are_acknowledged_and_ignored(either_door: World, body: dict[str, Any]) -> None:
    """F20."""
    reply = either_door.deliver(body)
    either_door.drain()

    row = either_door.event()
    assert reply.said in ("accepted", "ignored")
    assert row["status"] == "ignored"
    assert row["reason"]
    assert either_door.letters() == []


def test_the_secret_that_matched_is_recorded(database: Database, clock: FakeClock) -> None:
    world = a_world(database, clock)
    newest = "whsec_" + "bmV3ZXN0LXNlY3JldC1vZi1hbGw="
    secrets = parse_secrets("standard-webhooks", [newest, WHSEC_SECRET])
    entry = an_entry("renders", "standard-webhooks", clock, webhook_secrets=secrets)
    world.runtime.providers["renders"] = entry  # type: ignore[index]

    old = world.deliver(says("succeeded"))
    headers = sign("standard-webhooks", secret=newest, body=B1.body, delivery_id="msg_2", at=clock.now())
    new = call(world.app, "/webhooks/renders", body=B1.body, headers=headers)

    assert (old.said, new.said) == ("accepted", "accepted")
    assert {row["delivery_id"]: row["secret_index"] for row in world.events()} == {"msg_1": 1, "msg_2": 0}
    world.intake.stop()


def test_a_token_no_database_could_hold_is_only_a_wrong_token(either_door: World) -> None:
    reply = either_door.deliver(says("succeeded"), path="/webhooks/renders/a\x00b" + "c" * 5000)

    assert reply.said == "accepted"
