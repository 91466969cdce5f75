"""Stripe's scheme: known vectors, several signatures, and every way to get it wrong."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime, timedelta

import pytest

from jobs.core.errors import Expired, FromFuture, Malformed, Mismatch, Missing, SignatureError
from jobs.core.signatures import SchemeOptions, Verified, parse_secrets, sign, verify
from tests.vectors import ALL, B1, NOW, TEXT_SECRET, T, Vector

WITH_S = [vector for vector in ALL if vector.s]
DEFAULTS = SchemeOptions()


def check(
    header: str | None,
    body: bytes = B1.body,
    *,
    secrets: tuple[str, ...] = (TEXT_SECRET,),
    options: SchemeOptions = DEFAULTS,
    name: str = "stripe-signature",
) -> Verified:
    headers = {} if header is None else {name: header}
    parsed = parse_secrets("stripe", secrets)
    return verify("stripe", headers=headers, body=body, secrets=parsed, now=NOW, options=options)


def signed_at(stamp: str) -> str:
    digest = hmac.digest(TEXT_SECRET.encode(), f"{stamp}.".encode() + B1.body, "sha256").hex()
    return f"t={stamp},v1={digest}"


@pytest.mark.parametrize("vector", WITH_S, ids=lambda vector: vector.name)
def test_an_authentic_body_is_proven_byte_for_byte(vector: Vector) -> None:
    """F01, F03."""
    found = check(vector.stripe["stripe-signature"], vector.body)

    assert found == Verified(secret_index=0, delivery_id=None, signed_at=NOW)


def test_the_secret_is_used_as_text_with_its_prefix() -> None:
    at = datetime.fromtimestamp(1700000000, UTC)
    headers = sign("stripe", secret="whsec_test", body=b'{"id":"evt_1","object":"event"}', delivery_id="evt_1", at=at)

    digest = "4c15fb2a43f93ef61eaa3e0893866d57cad9cad4223242cfb96f362480cb4021"
    assert headers == {"Stripe-Signature": f"t=1700000000,v1={digest}"}


@pytest.mark.parametrize(
    "header",
    [
        f"t={T},v1={B1.s}",
        f"v1={B1.s},t={T}",
        f"t={T},v1={'0' * 64},v1={B1.s}",
        f"t={T}, v1={B1.s} ,v0=abc",
        f"t={T},v1={B1.s.upper()}",
        f"t={T},junk,v1={B1.s}",
    ],
)
def test_any_good_signature_among_several_is_enough(header: str) -> None:
    assert check(header).secret_index == 0


def test_the_secret_that_matched_is_named() -> None:
    assert check(signed_at(str(T)), secrets=("another-secret-text", TEXT_SECRET)).secret_index == 1


@pytest.mark.parametrize("header", [None, "", " "])
def test_a_missing_or_empty_header_is_refused(header: str | None) -> None:
    """F03."""
    with pytest.raises(Missing):
        check(header)


@pytest.mark.parametrize(
    "header",
    [
        "t=,v1=",
        f"v1={B1.s}",
        f"t=abc,v1={B1.s}",
        f"t={T},v1=",
        f"t={T}",
        f"t={T},v0={B1.s}",
        f"t={T},t={T},v1={B1.s}",
        "x" * 8192,
        "=" * 8192,
        "," * 8192,
    ],
)
def test_a_malformed_header_is_refused(header: str) -> None:
    """F03."""
    with pytest.raises(Malformed):
        check(header)


@pytest.mark.parametrize("header", [f"t={T},v1=\xe9", "t=\xe9,v1=aa", "\xe9\xff", f"t={T},v1=\u20ac", "\ud800"])
def test_a_byte_beyond_ascii_is_refused_and_breaks_nothing(header: str) -> None:
    """F02."""
    with pytest.raises(SignatureError):
        check(header)


@pytest.mark.parametrize("stamp", [T - 300, T - 299, T + 5, T + 300])
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
        (f" {T}", Malformed),
        ("", Malformed),
        ("9" * 5000, Malformed),
    ],
)
def test_any_other_timestamp_is_refused_though_it_is_signed(stamp: str, refusal: type[SignatureError]) -> None:
    """F04."""
    with pytest.raises(refusal):
        check(signed_at(stamp))


def test_milliseconds_and_a_wider_tolerance_can_be_declared() -> None:
    """F04."""
    assert check(signed_at(str(T * 1000)), options=SchemeOptions(timestamp_unit="ms")).signed_at == NOW
    wider = SchemeOptions(tolerance=timedelta(minutes=30))
    assert check(signed_at(str(T - 1799)), options=wider).secret_index == 0


def test_the_header_can_be_renamed() -> None:
    options = SchemeOptions(header="Mux-Signature")

    assert check(signed_at(str(T)), options=options, name="mux-signature").secret_index == 0
    with pytest.raises(Missing):
        check(signed_at(str(T)), options=options, name="stripe-signature")


def test_another_body_under_the_same_signature_is_refused() -> None:
    with pytest.raises(Mismatch):
        check(B1.stripe["stripe-signature"], B1.body + b" ")
