"""Invariant I9, for every scheme: what was signed verifies, and nothing else does or breaks anything."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import ConfigError, SignatureError
from jobs.core.signatures import SCHEMES, SchemeOptions, parse_secrets, sign, verify
from tests.vectors import NOW, WHSEC_SECRET

pytestmark = pytest.mark.invariant("I9")

SECRETS = {scheme: parse_secrets(scheme, [WHSEC_SECRET]) for scheme in SCHEMES}
schemes = st.sampled_from(sorted(SCHEMES))
units = st.sampled_from(["s", "ms"])
visible = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=255)
instants = st.integers(0, 7_000_000_000_000).map(lambda ms: datetime.fromtimestamp(ms / 1000, UTC))
options = st.builds(
    SchemeOptions,
    timestamp_unit=units,
    header=st.sampled_from([None, "X-Other-Signature"]),
    prefix=st.sampled_from(["sha256=", "", "v0=", "HMAC "]),
    encoding=st.sampled_from(["hex", "base64"]),
    delivery_id_header=st.sampled_from([None, "X-Delivery"]),
)
wire_text = st.text(st.characters(max_codepoint=0xFF), max_size=300)
names = st.sampled_from(
    [
        *["webhook-id", "webhook-timestamp", "webhook-signature", "svix-id", "svix-timestamp", "svix-signature"],
        *["stripe-signature", "x-signature", "x-other-signature", "x-delivery"],
    ]
)
#: Junk that keeps the shape of a signature, so that it gets past the first checks.
near_misses = st.builds(
    lambda prefix, rest: prefix + rest,
    st.sampled_from(["v1,", "t=1767225600,v1=", "t=", "sha256=", "v1=", "1767225600", "9" * 400]),
    st.one_of(wire_text, st.text(max_size=100)),
)


def lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def is_proven(scheme: str, headers: Mapping[str, str], body: bytes, *, options: SchemeOptions) -> bool:
    """Whether a request is accepted. What is neither acceptance nor the one refusal fails the test."""
    try:
        verify(scheme, headers=headers, body=body, secrets=SECRETS[scheme], now=NOW, options=options)
    except SignatureError:
        return False
    return True


@given(schemes, st.binary(max_size=500), visible, instants, options)
def test_what_was_signed_verifies(
    scheme: str, body: bytes, delivery_id: str, at: datetime, options: SchemeOptions
) -> None:
    headers = sign(scheme, secret=WHSEC_SECRET, body=body, delivery_id=delivery_id, at=at, options=options)

    found = verify(scheme, headers=lowered(headers), body=body, secrets=SECRETS[scheme], now=at, options=options)

    assert found.secret_index == 0
    assert found.delivery_id in (None, delivery_id)
    assert found.signed_at is None or timedelta(0) <= at - found.signed_at < timedelta(seconds=1)


@given(schemes, st.binary(min_size=1, max_size=200), options, st.data())
def test_any_flipped_bit_of_the_body_is_refused(
    scheme: str, body: bytes, options: SchemeOptions, data: st.DataObject
) -> None:
    headers = sign(scheme, secret=WHSEC_SECRET, body=body, delivery_id="d-1", at=NOW, options=options)
    bit = data.draw(st.integers(0, len(body) * 8 - 1))
    changed = bytearray(body)
    changed[bit // 8] ^= 1 << bit % 8

    assert not is_proven(scheme, lowered(headers), bytes(changed), options=options)


@given(schemes, st.binary(max_size=100), options, st.data())
def test_any_flipped_bit_of_a_signed_header_is_refused(
    scheme: str, body: bytes, options: SchemeOptions, data: st.DataObject
) -> None:
    headers = lowered(sign(scheme, secret=WHSEC_SECRET, body=body, delivery_id="d-1", at=NOW, options=options))
    headers.pop("x-delivery", None)  # not signed in the one scheme that has it
    name = data.draw(st.sampled_from(sorted(headers)))
    raw = bytearray(headers[name].encode("latin-1"))
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8
    changed = headers | {name: raw.decode("latin-1")}

    harmless = changed[name].lower() == headers[name].lower() and scheme != "standard-webhooks"
    assert harmless or not is_proven(scheme, changed, body, options=options)


@given(
    schemes,
    st.binary(max_size=100),
    st.dictionaries(names, st.one_of(wire_text, near_misses), max_size=10),
    options,
)
def test_random_requests_are_refused_and_break_nothing(
    scheme: str, body: bytes, headers: dict[str, str], options: SchemeOptions
) -> None:
    assert not is_proven(scheme, headers, body, options=options)


@given(schemes, st.binary(max_size=100))
def test_without_a_secret_nothing_is_accepted(scheme: str, body: bytes) -> None:
    headers = lowered(sign(scheme, secret=WHSEC_SECRET, body=body, delivery_id="d-1", at=NOW))

    with pytest.raises(SignatureError):
        verify(scheme, headers=headers, body=body, secrets=(), now=NOW)


@given(schemes, st.text(max_size=60))
def test_any_text_is_a_usable_secret_or_a_told_fault(scheme: str, text: str) -> None:
    try:
        parsed = parse_secrets(scheme, [text])
    except ConfigError:
        return

    assert all(len(secret.key) >= 8 for secret in parsed)


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
@pytest.mark.parametrize("delivery_id", ["", "two words", "line\r\nbreak: x", "x" * 256, "\ud800"])
def test_a_delivery_id_that_could_break_a_header_is_not_signed(scheme: str, delivery_id: str) -> None:
    with pytest.raises(ValueError, match="delivery id"):
        sign(scheme, secret=WHSEC_SECRET, body=b"", delivery_id=delivery_id, at=NOW)


def test_options_no_sender_could_mean_are_refused() -> None:
    with pytest.raises(ValueError, match="tolerance"):
        SchemeOptions(tolerance=timedelta(0))
    with pytest.raises(ValueError, match="timestamp_unit"):
        SchemeOptions(timestamp_unit="us")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="encoding"):
        SchemeOptions(encoding="base32")  # type: ignore[arg-type]
