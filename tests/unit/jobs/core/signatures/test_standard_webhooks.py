"""Standard Webhooks, `v1`: known vectors, both header families, rotation, and every way to get it wrong."""

from __future__ import annotations

import base64
import hmac
import json
from datetime import UTC, datetime, timedelta

import pytest

from jobs.core.errors import Expired, FromFuture, Malformed, Mismatch, Missing, SignatureError
from jobs.core.signatures import SchemeOptions, Verified, parse_secrets, sign, verify
from tests.vectors import ALL, B1, B2, NOW, WHSEC_SECRET, T, Vector

OTHER_SECRET = "whsec_b3RoZXItc2VjcmV0LW9mLXRoZS10ZXN0cw=="
WITH_W = [vector for vector in ALL if vector.w]
DEFAULTS = SchemeOptions()


def check(
    headers: dict[str, str],
    body: bytes = B1.body,
    *,
    secrets: tuple[str, ...] = (WHSEC_SECRET,),
    options: SchemeOptions = DEFAULTS,
) -> Verified:
    return verify(
        "standard-webhooks",
        headers=headers,
        body=body,
        secrets=parse_secrets("standard-webhooks", secrets),
        now=NOW,
        options=options,
    )


def signed_at(stamp: str, body: bytes = B1.body) -> dict[str, str]:
    """Sign whatever stands where the timestamp should be, as a careless sender would."""
    digest = hmac.digest(b"field-log-test-secret-01", f"msg_B1.{stamp}.".encode() + body, "sha256")
    return {
        "webhook-id": "msg_B1",
        "webhook-timestamp": stamp,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }


@pytest.mark.parametrize("vector", WITH_W, ids=lambda vector: vector.name)
def test_an_authentic_body_is_proven_byte_for_byte(vector: Vector) -> None:
    """F01, F03: odd blanks, an empty body and an escaped U+0000 are all authentic as they came."""
    found = check(vector.standard_webhooks, vector.body)

    assert found == Verified(secret_index=0, delivery_id=vector.message_id, signed_at=NOW)


def test_the_published_vector_is_verified_and_signed_alike() -> None:
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    at = datetime.fromtimestamp(1614265330, UTC)

    headers = sign("standard-webhooks", secret=secret, body=body, delivery_id="msg_p5jXN8AQM9LWM0D4loKWxJek", at=at)

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    secrets = parse_secrets("standard-webhooks", [secret])
    assert verify("standard-webhooks", headers=headers, body=body, secrets=secrets, now=at).signed_at == at


def test_a_body_encoded_a_second_time_is_refused() -> None:
    """F01 (b): the signature is over the bytes on the wire, not over what they mean."""
    with pytest.raises(Mismatch):
        check(B2.standard_webhooks, json.dumps(json.loads(B2.body)).encode())


def test_the_older_header_names_prove_the_same() -> None:
    headers = {name.replace("webhook-", "svix-"): value for name, value in B1.standard_webhooks.items()}

    assert check(headers).delivery_id == "msg_B1"


def test_headers_of_two_families_are_never_mixed() -> None:
    headers = B1.standard_webhooks
    headers["svix-signature"] = headers.pop("webhook-signature")

    with pytest.raises(Missing):
        check(headers)


@pytest.mark.parametrize(
    "signatures",
    [
        f"v1,{B1.w}",
        f"v1,AAAA v1,{B1.w}",
        f"v1a,whatever v2,thing v1,{B1.w}",
        f"  v1,{B1.w}   v1,AAAA ",
        f"junk v1,{B1.w}",
    ],
)
def test_any_good_signature_among_several_is_enough(signatures: str) -> None:
    assert check({**B1.standard_webhooks, "webhook-signature": signatures}).secret_index == 0


@pytest.mark.parametrize("signatures", [f"{B1.w} v1,AAAA", f"v2,{B1.w}", f"v1a,{B1.w} v1,AAAA", f"V1,{B1.w}"])
def test_a_good_digest_under_another_version_is_refused(signatures: str) -> None:
    with pytest.raises(Mismatch):
        check({**B1.standard_webhooks, "webhook-signature": signatures})


@pytest.mark.parametrize(
    ("secrets", "index"),
    [((WHSEC_SECRET, OTHER_SECRET), 0), ((OTHER_SECRET, WHSEC_SECRET), 1)],
)
def test_the_secret_that_matched_is_named(secrets: tuple[str, ...], index: int) -> None:
    assert check(B1.standard_webhooks, secrets=secrets).secret_index == index


@pytest.mark.parametrize("secrets", [(OTHER_SECRET,), ()])
def test_without_the_right_secret_nothing_is_accepted(secrets: tuple[str, ...]) -> None:
    """F03: a provider with no secret configured accepts nothing."""
    with pytest.raises(Mismatch):
        check(B1.standard_webhooks, secrets=secrets)


@pytest.mark.parametrize("absent", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@pytest.mark.parametrize("value", [None, "", " "])
def test_a_missing_or_empty_header_is_refused(absent: str, value: str | None) -> None:
    """F03."""
    headers = B1.standard_webhooks
    del headers[absent]
    if value is not None:
        headers[absent] = value

    with pytest.raises(Missing):
        check(headers)


@pytest.mark.parametrize("signature", ["v1,", "v1", B1.w, ",", "v1," + "A" * 8192, "v1a," + B1.w])
def test_a_malformed_signature_is_refused(signature: str) -> None:
    """F03."""
    with pytest.raises((Malformed, Mismatch)):
        check({**B1.standard_webhooks, "webhook-signature": signature})


@pytest.mark.parametrize("header", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@pytest.mark.parametrize("junk", ["\xe9", "v1,\xe9", "\x00", "v1,\u20ac", "\udce9"])
def test_a_byte_beyond_ascii_is_refused_and_breaks_nothing(header: str, junk: str) -> None:
    """F02: the constant-time comparison of two texts would raise on it."""
    with pytest.raises(SignatureError):
        check({**B1.standard_webhooks, header: junk})


@pytest.mark.parametrize("stamp", [T - 300, T - 299, T, T + 5, T + 300])
def test_a_timestamp_within_the_tolerance_is_fresh(stamp: int) -> None:
    """F04."""
    assert check(signed_at(str(stamp))).signed_at == NOW + timedelta(seconds=stamp - T)


@pytest.mark.parametrize(
    ("stamp", "refusal"),
    [
        (str(T - 301), Expired),
        (str(T + 301), FromFuture),
        (str(T * 1000), FromFuture),
        ("-1", Malformed),
        ("1767225600.5", Malformed),
        ("1_767_225_600", Malformed),
        ("+1767225600", Malformed),
        ("\u0661\u0667\u0666", Malformed),
        ("", Missing),
        ("9" * 5000, Malformed),
        ("9" * 16, FromFuture),
        ("0", Expired),
    ],
)
def test_any_other_timestamp_is_refused_though_it_is_signed(stamp: str, refusal: type[SignatureError]) -> None:
    """F04."""
    with pytest.raises(refusal):
        check(signed_at(stamp))


def test_a_sender_that_counts_milliseconds_is_read_in_milliseconds() -> None:
    """F04: T*1000 is now, and T is 1970."""
    options = SchemeOptions(timestamp_unit="ms")

    assert check(signed_at(str(T * 1000)), options=options).signed_at == NOW
    with pytest.raises(Expired):
        check(signed_at(str(T)), options=options)


def test_a_wrong_signature_is_a_mismatch_however_old_it_is() -> None:
    headers = {**B1.standard_webhooks, "webhook-timestamp": str(T - 1000)}

    with pytest.raises(Mismatch):
        check(headers)


def test_the_timestamp_is_signed_as_it_was_sent() -> None:
    """F04: `01767225600` is the same number and another text."""
    assert check(signed_at(f"0{T}")).signed_at == NOW
    with pytest.raises(Mismatch):
        check({**B1.standard_webhooks, "webhook-timestamp": f"0{T}"})


@pytest.mark.parametrize("delivery_id", ["x" * 256, "two words", "caf\xe9"])
def test_a_useless_delivery_id_counts_as_none(delivery_id: str) -> None:
    """F12: authentic all the same; only not worth deduplicating by."""
    signed = delivery_id.encode("latin-1") + f".{T}.".encode() + B1.body
    digest = hmac.digest(b"field-log-test-secret-01", signed, "sha256")
    headers = {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(T),
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }

    assert check(headers).delivery_id is None
