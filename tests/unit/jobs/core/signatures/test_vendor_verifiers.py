"""Our signatures against the vendors' own verifiers, both ways, and every change of a request judged by both.

Vendors' code differs from ours on purpose in the places listed in `QUIRKS`, and in no other: whoever updates a vendor's
package learns here what has changed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

import cloudinary
import cloudinary.utils
import pytest
import resend
import standardwebhooks
import stripe
import svix.webhooks
from elevenlabs import ElevenLabs
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import OpenAI
from replicate.webhook import Webhooks as ReplicateWebhooks
from replicate.webhook import WebhookSigningSecret
from slack_sdk.signature import SignatureVerifier
from twilio.request_validator import RequestValidator

from jobs.core.errors import SignatureError
from jobs.core.signatures import SchemeOptions, parse_secrets, sign, verify
from tests.vectors import TEXT_SECRET, WHSEC_SECRET

URL = "https://homing.test/webhooks/sender"
DEFAULTS = SchemeOptions()
#: Their code is slow to the point of seconds, and what may differ is in the table of changes.
few = settings(max_examples=25)
Headers = Mapping[str, str]

bodies = st.dictionaries(st.text(max_size=20), st.one_of(st.text(max_size=40), st.integers()), max_size=5).map(
    lambda fields: json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")
)


@dataclass(frozen=True)
class Vendor:
    """A verifier that is not ours.

    Attributes:
        proves: takes headers by lower-case name and a body; false or any exception is a refusal.
        signs: makes the headers of a body, where the vendor's package can.
    """

    name: str
    scheme: str
    secret: str
    proves: Callable[[Headers, bytes], bool]
    signs: Callable[[bytes], Headers] | None = None
    options: SchemeOptions = DEFAULTS

    def ours(self, headers: Headers, body: bytes) -> bool:
        try:
            verify(
                self.scheme,
                headers=headers,
                body=body,
                secrets=parse_secrets(self.scheme, [self.secret]),
                now=now(),
                options=self.options,
                url=URL,
            )
        except SignatureError:
            return False
        return True

    def theirs(self, headers: Headers, body: bytes) -> bool:
        try:
            return self.proves(headers, body)
        except Exception:  # noqa: BLE001 - they break in many ways, and each of them is a refusal
            return False

    def sign(self, body: bytes, at: datetime | None = None) -> dict[str, str]:
        signed = sign(
            self.scheme,
            secret=self.secret,
            body=body,
            delivery_id="msg_1",
            at=at or now(),
            options=self.options,
            url=URL,
        )
        return {name.lower(): value for name, value in signed.items()}


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def passes(_: object) -> bool:
    return True


def standard(headers: Headers, body: bytes) -> bool:
    return passes(standardwebhooks.Webhook(WHSEC_SECRET).verify(body, dict(headers)))


def standard_signs(body: bytes) -> Headers:
    at = now()
    signature = standardwebhooks.Webhook(WHSEC_SECRET).sign("msg_1", at, body.decode())
    return {"webhook-id": "msg_1", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signature}


def svix_proves(headers: Headers, body: bytes) -> bool:
    svix.webhooks.Webhook(WHSEC_SECRET).verify(body, as_svix(headers))
    return True


def svix_signs(body: bytes) -> Headers:
    at = now()
    signature = svix.webhooks.Webhook(WHSEC_SECRET).sign("msg_1", at, body.decode())
    return {"svix-id": "msg_1", "svix-timestamp": str(int(at.timestamp())), "svix-signature": signature}


def as_svix(headers: Headers) -> dict[str, str]:
    return {name.replace("webhook-", "svix-"): value for name, value in headers.items()}


OPENAI = OpenAI(api_key="none", webhook_secret=WHSEC_SECRET)


def openai_proves(headers: Headers, body: bytes) -> bool:
    OPENAI.webhooks.verify_signature(body, dict(headers), tolerance=300)
    return True


def replicate_proves(headers: Headers, body: bytes) -> bool:
    secret = WebhookSigningSecret(key=WHSEC_SECRET)
    ReplicateWebhooks.validate(headers=dict(headers), body=body.decode(), secret=secret, tolerance=300)
    return True


def resend_proves(headers: Headers, body: bytes) -> bool:
    parts: Any = {name: headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature")}
    options: Any = {"payload": body.decode(), "headers": parts, "webhook_secret": WHSEC_SECRET}
    return passes(resend.Webhooks.verify(options))


def stripe_proves(headers: Headers, body: bytes) -> bool:
    header = headers["stripe-signature"]
    return bool(stripe.WebhookSignature.verify_header(body.decode(), header, TEXT_SECRET, tolerance=300))


def stripe_signs(body: bytes) -> Headers:
    return {"stripe-signature": stripe.WebhookSignature.generate_signature_header(body.decode(), TEXT_SECRET)}


ELEVEN = ElevenLabs(api_key="none")


def elevenlabs_proves(headers: Headers, body: bytes) -> bool:
    return passes(ELEVEN.webhooks.construct_event(body.decode(), headers["elevenlabs-signature"], TEXT_SECRET))


SLACK = SignatureVerifier(TEXT_SECRET)


def slack_proves(headers: Headers, body: bytes) -> bool:
    return SLACK.is_valid(body, headers["x-slack-request-timestamp"], headers["x-slack-signature"])


def slack_signs(body: bytes) -> Headers:
    stamp = str(int(time.time()))
    signature = SLACK.generate_signature(timestamp=stamp, body=body)
    assert signature is not None
    return {"x-slack-request-timestamp": stamp, "x-slack-signature": signature}


def cloudinary_proves(headers: Headers, body: bytes, *, algorithm: str = "sha1") -> bool:
    cloudinary.config(api_secret=TEXT_SECRET)
    stamp, signature = headers["x-cld-timestamp"], headers["x-cld-signature"]
    return bool(cloudinary.utils.verify_notification_signature(body.decode(), stamp, signature, algorithm=algorithm))


VENDORS = [
    Vendor("standardwebhooks", "standard-webhooks", WHSEC_SECRET, standard, standard_signs),
    Vendor("svix", "standard-webhooks", WHSEC_SECRET, svix_proves, svix_signs),
    Vendor("openai", "standard-webhooks", WHSEC_SECRET, openai_proves),
    Vendor("replicate", "standard-webhooks", WHSEC_SECRET, replicate_proves),
    Vendor("resend", "standard-webhooks", WHSEC_SECRET, resend_proves),
    Vendor("stripe", "stripe", TEXT_SECRET, stripe_proves, stripe_signs),
    Vendor("elevenlabs", "elevenlabs", TEXT_SECRET, elevenlabs_proves),
    Vendor("slack", "slack", TEXT_SECRET, slack_proves, slack_signs),
    Vendor("cloudinary", "cloudinary", TEXT_SECRET, cloudinary_proves),
    Vendor(
        "cloudinary-sha256",
        "cloudinary",
        TEXT_SECRET,
        lambda headers, body: cloudinary_proves(headers, body, algorithm="sha256"),
        options=SchemeOptions(algorithm="sha256"),
    ),
]
BY_NAME = {vendor.name: vendor for vendor in VENDORS}
vendors = st.sampled_from(VENDORS)


@few
@given(vendors, bodies)
def test_what_we_sign_a_vendor_takes(vendor: Vendor, body: bytes) -> None:
    headers = vendor.sign(body)

    assert vendor.theirs(headers, body)
    assert vendor.ours(headers, body)


@few
@given(st.sampled_from([vendor for vendor in VENDORS if vendor.signs]), bodies)
def test_what_a_vendor_signs_we_take(vendor: Vendor, body: bytes) -> None:
    assert vendor.signs is not None

    assert vendor.ours(vendor.signs(body), body)


@few
@given(vendors, bodies, bodies)
def test_both_judge_another_body_alike(vendor: Vendor, signed: bytes, sent: bytes) -> None:
    headers = vendor.sign(signed)

    assert vendor.ours(headers, sent) == vendor.theirs(headers, sent) == (signed == sent)


junk = st.one_of(
    st.text(st.characters(max_codepoint=0xFF), max_size=60),
    st.sampled_from(["v1,", "v0=", "t=1,v1=", "sha256="]).flatmap(
        lambda start: st.binary().map(lambda b: start + b.hex())
    ),
)


@few
@given(vendors, bodies, junk, st.data())
def test_both_refuse_junk_in_the_place_of_a_signature(
    vendor: Vendor, body: bytes, value: str, data: st.DataObject
) -> None:
    headers = vendor.sign(body)
    name = data.draw(st.sampled_from([name for name in headers if name.endswith("signature")]))

    changed = {**headers, name: value}

    assert not vendor.ours(changed, body)
    assert not vendor.theirs(changed, body)


# Changes, one by one -------------------------------------------------------------------------------------


def shifted(seconds: float) -> Callable[[Vendor, bytes], dict[str, str]]:
    return lambda vendor, body: vendor.sign(body, now() + timedelta(seconds=seconds))


def rewritten(change: Callable[[str], str], part: str = "signature") -> Callable[[Vendor, bytes], dict[str, str]]:
    def run(vendor: Vendor, body: bytes) -> dict[str, str]:
        headers = vendor.sign(body)
        return {name: change(value) if name.endswith(part) else value for name, value in headers.items()}

    return run


#: Each request was good before the change.
CHANGES: dict[str, Callable[[Vendor, bytes], dict[str, str]]] = {
    "nothing": rewritten(lambda value: value),
    "4 minutes ago": shifted(-240),
    "6 minutes ago": shifted(-360),
    "31 minutes ago": shifted(-1860),
    "3 hours ago": shifted(-10_800),
    "4 minutes ahead": shifted(240),
    "6 minutes ahead": shifted(360),
    "a day ahead": shifted(86_400),
    "an empty signature": rewritten(lambda value: ""),
    "a blank before": rewritten(lambda value: f" {value}"),
    "upper case": rewritten(str.upper),
    "another version": rewritten(lambda value: value.replace("v1,", "v2,").replace("v0=", "v9=").replace("v1=", "v9=")),
    "no version": rewritten(lambda value: value.replace("v1,", "").replace("v0=", "").replace("v1=", "")),
    "a byte beyond ascii": rewritten(lambda value: value + "\xe9"),
    "a comma and more": rewritten(lambda value: value + ",x"),
    "an unknown version first": rewritten(lambda value: f"v1a,AAAA {value}"),
    "junk words first": rewritten(lambda value: f"junk {value}"),
    "junk words behind": rewritten(lambda value: f"{value} junk"),
    "a fraction of a second": rewritten(lambda value: f"{value}.5", "timestamp"),
    "no digits for a time": rewritten(lambda value: "soon", "timestamp"),
    "underscores in the time": rewritten(lambda value: f"{value[:1]}_{value[1:]}", "timestamp"),
}
#: Where a vendor's verdict is not ours, theirs, and why ours is what it is.
LENIENT = {  # they take it, and we refuse it
    ("replicate", "another version"): "any version's digest is compared",
    ("resend", "another version"): "any version's digest is compared",
    ("replicate", "a comma and more"): "what follows a second comma is dropped",
    **{
        (name, change): "float() reads it; we take ASCII digits and sign the text as sent"
        for name in ("standardwebhooks", "svix")
        for change in ("a fraction of a second", "underscores in the time")
    },
    ("openai", "no version"): "a bare digest is taken for v1",
    ("stripe", "6 minutes ahead"): "no bound ahead: a recording could be made fresh for years",
    ("stripe", "a day ahead"): "no bound ahead",
    ("elevenlabs", "a day ahead"): "no bound ahead",
    ("cloudinary", "a day ahead"): "no bound ahead",
    ("cloudinary-sha256", "a day ahead"): "no bound ahead",
}
STRICT = {  # they refuse it, or break, and we take it
    **{
        (name, "a blank before"): "outer blanks of a header are no part of its value"
        for name in ("standardwebhooks", "svix", "stripe", "elevenlabs", "slack", "cloudinary", "cloudinary-sha256")
    },
    **{
        (name, "upper case"): "the case of hex does not matter" for name in ("slack", "cloudinary", "cloudinary-sha256")
    },
    **{
        (name, "junk words first"): "they break (ValueError) at a word that is no signature, though a good one follows"
        for name in ("standardwebhooks", "svix", "replicate")
    },
}


def verdicts() -> Iterator[tuple[str, str, bool, bool]]:
    body = b'{"id":"evt_1"}'
    for vendor in VENDORS:
        for name, change in CHANGES.items():
            headers = change(vendor, body)
            yield vendor.name, name, vendor.ours(headers, body), vendor.theirs(headers, body)


def test_a_vendor_differs_from_us_only_where_it_is_listed() -> None:
    judged = list(verdicts())

    assert {(vendor, change) for vendor, change, ours, theirs in judged if theirs and not ours} == set(LENIENT)
    assert {(vendor, change) for vendor, change, ours, theirs in judged if ours and not theirs} == set(STRICT)


@pytest.mark.parametrize("vendor", [vendor for vendor in VENDORS if vendor.scheme == "standard-webhooks"])
def test_any_of_several_signatures_will_do_for_both(vendor: Vendor) -> None:
    """A rotation: the sender signs with the old secret and the new one."""
    headers = vendor.sign(b"{}")
    other = replace(vendor, secret="whsec_b3RoZXItc2VjcmV0LW9mLXRoZS10ZXN0cw==").sign(b"{}")
    both = {**headers, "webhook-signature": f"{other['webhook-signature']} {headers['webhook-signature']}"}

    assert vendor.ours(both, b"{}")
    assert vendor.theirs(both, b"{}")


def test_one_secret_without_its_prefix_is_two_keys_to_openai_and_one_to_us() -> None:
    """They take the text as the key; the specification, and we, decode it."""
    bare = WHSEC_SECRET.removeprefix("whsec_")
    headers = BY_NAME["openai"].sign(b"{}")

    assert replace(BY_NAME["openai"], secret=bare).ours(headers, b"{}")
    with pytest.raises(Exception, match="does not match"):
        OPENAI.webhooks.verify_signature(b"{}", headers, secret=bare)


# Twilio --------------------------------------------------------------------------------------------------

TWILIO = RequestValidator(TEXT_SECRET)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
forms = st.dictionaries(texts, texts, max_size=8)


def twilio_ours(url: str, body: bytes, headers: Headers) -> bool:
    secrets = parse_secrets("twilio", [TEXT_SECRET])
    try:
        verify("twilio", headers=headers, body=body, secrets=secrets, now=now(), url=url)
    except SignatureError:
        return False
    return True


@few
@given(forms, st.sampled_from([None, "HMAC_SHA1", "HMAC_SHA256"]))
def test_what_twilio_signs_we_take(form: dict[str, str], algorithm: str | None) -> None:
    headers = {"x-twilio-signature": TWILIO.compute_signature(URL, form, algorithm)}
    if algorithm is not None:
        headers["x-twilio-webhooks-signature-settings"] = f"key=webhooks_sharedkey_1,algorithm={algorithm}"

    assert twilio_ours(URL, urlencode(form).encode(), headers)


@few
@given(forms)
def test_what_we_sign_twilio_takes(form: dict[str, str]) -> None:
    body = urlencode(form).encode()
    headers = sign("twilio", secret=TEXT_SECRET, body=body, delivery_id="d", at=now(), url=URL)

    read = dict(parse_qsl(body.decode(), keep_blank_values=True))
    assert TWILIO.validate(URL, read, headers["X-Twilio-Signature"])


@few
@given(forms, forms)
def test_we_and_twilio_judge_another_form_alike(signed: dict[str, str], sent: dict[str, str]) -> None:
    signature = TWILIO.compute_signature(URL, signed)

    ours = twilio_ours(URL, urlencode(sent).encode(), {"x-twilio-signature": signature})

    assert ours == TWILIO.validate(URL, sent, signature)


@few
@given(bodies, bodies)
def test_we_and_twilio_judge_a_json_body_by_the_digest_in_the_url(signed: bytes, sent: bytes) -> None:
    url = f"{URL}?bodySHA256={hashlib.sha256(signed).hexdigest()}"
    signature = TWILIO.compute_signature(url, {})

    ours = twilio_ours(url, sent, {"x-twilio-signature": signature})

    assert ours == TWILIO.validate(url, sent.decode(), signature) == (signed == sent)


@pytest.mark.parametrize("spelled", ["https://homing.test", "https://homing.test:443", "https://homing.test:8443"])
def test_the_port_of_the_url_does_not_matter_to_either(spelled: str) -> None:
    signature = TWILIO.compute_signature(URL, {"a": "1"})
    called = URL.replace("https://homing.test", spelled)

    assert twilio_ours(called, b"a=1", {"x-twilio-signature": signature})
    assert TWILIO.validate(called, {"a": "1"}, signature)


def test_twilio_compares_what_is_longer_by_its_start_and_we_do_not() -> None:
    signature = base64.b64encode(b"x" * 20).decode()

    assert not twilio_ours(URL, b"a=1", {"x-twilio-signature": signature})
    assert not TWILIO.validate(URL, {"a": "1"}, signature)
