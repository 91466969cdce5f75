"""Invariant I9, for every scheme: what was signed verifies, and nothing else does or breaks anything."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jobs.core.errors import ConfigError, SignatureError
from jobs.core.signatures import SCHEMES, Binding, SchemeOptions, Secret, parse_secrets, sign, verify
from tests.vectors import FAL_PRIVATE, FAL_PUBLIC, NOW, TEXT_SECRET, WHPK_SECRET, WHSEC_SECRET, WHSK_SECRET

pytestmark = pytest.mark.invariant("I9")


@dataclass(frozen=True)
class Party:
    """A scheme with a sender's and a receiver's secret."""

    scheme: str
    signs: str = TEXT_SECRET
    verifies: str = TEXT_SECRET

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return parse_secrets(self.scheme, [self.verifies])


#: Every scheme whose signature binds the body.
PARTIES = [
    Party("standard-webhooks", WHSEC_SECRET, WHSEC_SECRET),
    Party("standard-webhooks", WHSK_SECRET, WHPK_SECRET),
    Party("fal", FAL_PRIVATE, FAL_PUBLIC),
    *(Party(name) for name in ("stripe", "elevenlabs", "hmac-body", "hmac-timestamp-body", "slack", "cloudinary")),
    Party("twilio"),
]
parties = st.sampled_from(PARTIES)
units = st.sampled_from(["s", "ms"])
visible = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=255)
instants = st.integers(0, 7_000_000_000_000).map(lambda ms: datetime.fromtimestamp(ms / 1000, UTC))
options = st.builds(
    SchemeOptions,
    timestamp_unit=units,
    header=st.sampled_from([None, "X-Other-Signature"]),
    timestamp_header=st.sampled_from([None, "X-Other-Timestamp"]),
    prefix=st.sampled_from([None, "sha256=", "", "v0=", "HMAC "]),
    encoding=st.sampled_from(["hex", "base64"]),
    algorithm=st.sampled_from(["sha1", "sha256"]),
    delivery_id_header=st.sampled_from([None, "X-Delivery"]),
)
wire_text = st.text(st.characters(max_codepoint=0xFF), max_size=300)
names = st.sampled_from(
    [
        *["webhook-id", "webhook-timestamp", "webhook-signature", "svix-id", "svix-timestamp", "svix-signature"],
        *["stripe-signature", "x-signature", "x-other-signature", "x-delivery", "elevenlabs-signature"],
        *["x-timestamp", "x-other-timestamp", "x-slack-signature", "x-slack-request-timestamp"],
        *["x-twilio-signature", "x-twilio-webhooks-signature-settings", "x-cld-signature", "x-cld-timestamp"],
        *[f"x-fal-webhook-{part}" for part in ("request-id", "user-id", "timestamp", "signature")],
        "x-webhook-secret",
    ]
)
#: Junk that keeps the shape of a signature, so that it gets past the first checks.
near_misses = st.builds(
    lambda prefix, rest: prefix + rest,
    st.sampled_from(
        [
            "v1,",
            "v1a,",
            "t=1767225600,v1=",
            "t=1767225600,v0=",
            "t=",
            "sha256=",
            "v1=",
            "v0=",
            "1767225600",
            "9" * 400,
            "algorithm=",
            "algorithm=HMAC_SHA256",
            "v1a," + "A" * 86 + "==",
            "00" * 64,
        ]
    ),
    st.one_of(wire_text, st.text(max_size=100)),
)
#: URLs as a receiver may be called by, and as only an attacker would call it.
junk_urls = st.one_of(
    st.sampled_from(
        ["", "https://[::1/x", "https://h:99999/x", "http://h:x/", "https://h/x?bodySHA256=\xe9&bodySHA256"]
    ),
    st.text(max_size=80),
)
_URL = "https://homing.test/webhooks/calls"


def url_for(party: Party, body: bytes) -> str:
    """Twilio binds a body that is no form by the URL."""
    return f"{_URL}?bodySHA256={hashlib.sha256(body).hexdigest()}" if party.scheme == "twilio" else _URL


def lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


DEFAULTS = SchemeOptions()


def is_proven(
    party: Party, headers: Mapping[str, str], body: bytes, *, options: SchemeOptions = DEFAULTS, url: str = _URL
) -> bool:
    """Whether a request is accepted. What is neither acceptance nor the one refusal fails the test."""
    secrets = party.secrets
    try:
        verify(party.scheme, headers=headers, body=body, secrets=secrets, now=NOW, options=options, url=url)
    except SignatureError:
        return False
    return True


def signed(
    party: Party, body: bytes, *, delivery_id: str = "d-1", at: datetime = NOW, options: SchemeOptions = DEFAULTS
) -> dict[str, str]:
    url = url_for(party, body)
    headers = sign(
        party.scheme, secret=party.signs, body=body, delivery_id=delivery_id, at=at, options=options, url=url
    )
    return lowered(headers)


def test_every_scheme_that_proves_a_body_is_tried_here() -> None:
    assert {party.scheme for party in PARTIES} == {name for name, each in SCHEMES.items() if each.binds is Binding.BODY}


@given(parties, st.binary(max_size=500), visible, instants, options)
def test_what_was_signed_verifies(
    party: Party, body: bytes, delivery_id: str, at: datetime, options: SchemeOptions
) -> None:
    headers = signed(party, body, delivery_id=delivery_id, at=at, options=options)

    found = verify(
        party.scheme,
        headers=headers,
        body=body,
        secrets=party.secrets,
        now=at,
        options=options,
        url=url_for(party, body),
    )

    assert found.secret_index == 0
    assert found.delivery_id in (None, delivery_id)
    assert found.signed_at is None or timedelta(0) <= at - found.signed_at < timedelta(seconds=1)


@given(parties, st.binary(min_size=1, max_size=200), options, st.data())
def test_any_flipped_bit_of_the_body_is_refused(
    party: Party, body: bytes, options: SchemeOptions, data: st.DataObject
) -> None:
    headers = signed(party, body, options=options)
    bit = data.draw(st.integers(0, len(body) * 8 - 1))
    changed = bytearray(body)
    changed[bit // 8] ^= 1 << bit % 8

    assert not is_proven(party, headers, bytes(changed), options=options, url=url_for(party, body))


@given(
    st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)).filter(any), max_size=8),
    st.data(),
)
def test_any_flipped_bit_of_a_form_that_changes_what_it_says_is_refused(
    fields: list[tuple[str, str]], data: st.DataObject
) -> None:
    """Twilio signs what a form says, not how it is written: `%4A` and `%4a` are one letter."""
    body = urlencode([(k.encode("utf-8", "replace"), v.encode("utf-8", "replace")) for k, v in fields]).encode()
    assume(body)
    headers = lowered(sign("twilio", secret=TEXT_SECRET, body=body, delivery_id="d", at=NOW, url=_URL))
    assert is_proven(Party("twilio"), headers, body)
    bit = data.draw(st.integers(0, len(body) * 8 - 1))
    changed = bytearray(body)
    changed[bit // 8] ^= 1 << bit % 8

    harmless = says(bytes(changed)) == says(body)
    assert harmless or not is_proven(Party("twilio"), headers, bytes(changed))


def says(form: bytes) -> str:
    """What Twilio signs of a form: sorted pairs, each once, joined without a separator."""
    return "".join(name + value for name, value in sorted(set(parse_qsl(form.decode("latin-1"), True))))


@given(parties, st.binary(max_size=100), options, st.data())
def test_any_flipped_bit_of_a_signed_header_is_refused(
    party: Party, body: bytes, options: SchemeOptions, data: st.DataObject
) -> None:
    headers = signed(party, body, options=options)
    headers.pop("x-delivery", None)  # signed by no scheme
    name = data.draw(st.sampled_from(sorted(headers)))
    raw = bytearray(headers[name].encode("latin-1"))
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8
    changed = headers | {name: raw.decode("latin-1")}

    is_case = changed[name].lower() == headers[name].lower()
    harmless = is_case and party.scheme not in ("standard-webhooks", "twilio") and not name.endswith("-id")
    assert harmless or not is_proven(party, changed, body, options=options, url=url_for(party, body))


@given(
    parties,
    st.binary(max_size=100),
    st.dictionaries(names, st.one_of(wire_text, near_misses), max_size=12),
    options,
    junk_urls,
)
def test_random_requests_are_refused_and_break_nothing(
    party: Party, body: bytes, headers: dict[str, str], options: SchemeOptions, url: str
) -> None:
    assert not is_proven(party, headers, body, options=options, url=url)


@given(st.binary(max_size=100), st.dictionaries(names, st.one_of(wire_text, near_misses), max_size=12), options)
def test_random_requests_know_no_shared_secret(body: bytes, headers: dict[str, str], options: SchemeOptions) -> None:
    assert not is_proven(Party("shared-secret"), headers, body, options=options)


@given(parties, st.binary(max_size=100))
def test_without_a_secret_nothing_is_accepted(party: Party, body: bytes) -> None:
    headers = signed(party, body)

    with pytest.raises(SignatureError):
        verify(party.scheme, headers=headers, body=body, secrets=(), now=NOW, url=url_for(party, body))


@given(parties, st.binary(max_size=100), st.integers(0, 2))
def test_any_of_several_secrets_proves_and_is_named(party: Party, body: bytes, place: int) -> None:
    """A rotation at any time: older and newer secrets, of either kind, beside the one that signed."""
    other = {"standard-webhooks": OTHER_STANDARD, "fal": OTHER_FAL}.get(party.scheme, OTHER_TEXT)
    texts = [*other[:place], party.verifies, *other[place:]]

    found = verify(
        party.scheme,
        headers=signed(party, body),
        body=body,
        secrets=parse_secrets(party.scheme, texts),
        now=NOW,
        url=url_for(party, body),
    )

    assert found.secret_index == place


OTHER_TEXT = ["another-secret-00", "another-secret-01"]
OTHER_FAL = ["A" * 42 + "E", "B" * 42 + "E"]
OTHER_STANDARD = ["whsec_b3RoZXItc2VjcmV0LW9mLXRoZS10ZXN0cw==", "whpk_" + "B" * 42 + "E="]


@given(st.sampled_from(sorted(SCHEMES)), st.text(max_size=60))
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
        sign(scheme, secret=TEXT_SECRET, body=b"", delivery_id=delivery_id, at=NOW)


def test_options_no_sender_could_mean_are_refused() -> None:
    with pytest.raises(ValueError, match="tolerance"):
        SchemeOptions(tolerance=timedelta(0))
    with pytest.raises(ValueError, match="timestamp_unit"):
        SchemeOptions(timestamp_unit="us")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="encoding"):
        SchemeOptions(encoding="base32")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="algorithm"):
        SchemeOptions(algorithm="md5")  # type: ignore[arg-type]
