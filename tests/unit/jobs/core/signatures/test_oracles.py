"""Our signatures against the senders' own libraries, both ways.

The libraries are older than the faults they are known for, so where we differ from them on purpose the
difference is listed here, one test each: if a library changes, its test says so.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
import standardwebhooks
import stripe
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import ConfigError, FromFuture, Malformed, Mismatch, SignatureError
from jobs.core.signatures import parse_secrets, sign, verify
from tests.vectors import WHSEC_SECRET

ORACLE = standardwebhooks.Webhook(WHSEC_SECRET)

#: Both libraries read their own clock and take text, so bodies are UTF-8 and `now` is the real one.
bodies = (
    st.text(max_size=200)
    .map(lambda text: json.dumps({"text": text}, ensure_ascii=False))
    .filter(lambda text: text.isprintable())
)
ids = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=60)


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def ours(scheme: str, headers: dict[str, str], body: bytes) -> None:
    lowered = {name.lower(): value for name, value in headers.items()}
    verify(scheme, headers=lowered, body=body, secrets=parse_secrets(scheme, [WHSEC_SECRET]), now=now())


@given(bodies, ids)
def test_standard_webhooks_takes_what_we_sign(body: str, delivery_id: str) -> None:
    headers = sign("standard-webhooks", secret=WHSEC_SECRET, body=body.encode(), delivery_id=delivery_id, at=now())

    assert ORACLE.verify(body, headers) == json.loads(body)


@given(bodies, ids)
def test_we_take_what_standard_webhooks_signs(body: str, delivery_id: str) -> None:
    at = now()
    headers = {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": ORACLE.sign(delivery_id, at, body),
    }

    ours("standard-webhooks", headers, body.encode())


@given(bodies)
def test_stripe_takes_what_we_sign(body: str) -> None:
    headers = sign("stripe", secret=WHSEC_SECRET, body=body.encode(), delivery_id="evt_1", at=now())

    header = headers["Stripe-Signature"]
    assert stripe.WebhookSignature.verify_header(body, header, WHSEC_SECRET, tolerance=300)


@given(bodies)
def test_we_take_what_stripe_signs(body: str) -> None:
    header = stripe.WebhookSignature.generate_signature_header(body, WHSEC_SECRET)

    ours("stripe", {"Stripe-Signature": header}, body.encode())


@given(bodies, bodies)
def test_both_refuse_a_signature_over_another_body(signed: str, sent: str) -> None:
    header = stripe.WebhookSignature.generate_signature_header(signed, WHSEC_SECRET)
    same = signed == sent

    try:
        ours("stripe", {"Stripe-Signature": header}, sent.encode())
    except Mismatch:
        assert not same
        with pytest.raises(stripe.SignatureVerificationError):
            stripe.WebhookSignature.verify_header(sent, header, WHSEC_SECRET, tolerance=300)
    else:
        assert same


# Where we differ on purpose ------------------------------------------------------------------------------


def standard_webhooks_request(**changed: str) -> dict[str, str]:
    headers = sign("standard-webhooks", secret=WHSEC_SECRET, body=b"{}", delivery_id="m", at=now())
    return headers | {name.replace("_", "-"): value for name, value in changed.items()}


@pytest.mark.parametrize("signature", ["junk", "v1,\xe9", "v1,a", "v1,a,b"])
def test_standard_webhooks_breaks_on_a_malformed_signature_and_we_refuse_it(signature: str) -> None:
    """Theirs lets ValueError or binascii.Error escape: a 500 for an anonymous caller."""
    headers = standard_webhooks_request(webhook_signature=signature)

    with pytest.raises(ValueError):  # noqa: PT011 - whichever of them it is
        ORACLE.verify("{}", headers)
    with pytest.raises(SignatureError):
        ours("standard-webhooks", headers, b"{}")


def test_standard_webhooks_breaks_on_a_body_that_is_not_utf8_and_we_prove_it() -> None:
    """Authentic bytes are authentic; whether they can be used is another question."""
    headers = sign("standard-webhooks", secret=WHSEC_SECRET, body=b"\xff", delivery_id="m", at=now())

    with pytest.raises(UnicodeDecodeError):
        ORACLE.verify(b"\xff", headers)
    ours("standard-webhooks", headers, b"\xff")


def test_standard_webhooks_takes_a_fraction_of_a_second_and_we_want_whole_digits() -> None:
    at = now()
    headers = standard_webhooks_request(
        webhook_timestamp=f"{int(at.timestamp())}.0", webhook_signature=ORACLE.sign("m", at, "{}")
    )

    assert ORACLE.verify("{}", headers) == {}
    with pytest.raises(Malformed):
        ours("standard-webhooks", headers, b"{}")


def test_standard_webhooks_takes_an_unpadded_secret_and_we_refuse_it() -> None:
    unpadded = "whsec_b3RoZXItc2VjcmV0LW9mLXRoZS10ZXN0cw"

    standardwebhooks.Webhook(unpadded)
    with pytest.raises(ConfigError):
        parse_secrets("standard-webhooks", [unpadded])


def test_stripe_takes_a_timestamp_ten_years_ahead_and_we_refuse_it() -> None:
    """Their tolerance is one-sided: such a signature would stay fresh for ten years."""
    ahead = now() + timedelta(days=3650)
    headers = sign("stripe", secret=WHSEC_SECRET, body=b"{}", delivery_id="e", at=ahead)

    assert stripe.WebhookSignature.verify_header("{}", headers["Stripe-Signature"], WHSEC_SECRET, tolerance=300)
    with pytest.raises(FromFuture):
        ours("stripe", headers, b"{}")


@pytest.mark.parametrize("spelled", ["{t:_}", " {t}", "+{t}", "0{t}"])
def test_stripe_normalises_the_timestamp_and_we_sign_it_as_sent(spelled: str) -> None:
    stamp = int(now().timestamp())
    good = stripe.WebhookSignature.generate_signature_header("{}", WHSEC_SECRET, timestamp=stamp)
    header = good.replace(f"t={stamp}", f"t={spelled.format(t=stamp)}")

    assert stripe.WebhookSignature.verify_header("{}", header, WHSEC_SECRET, tolerance=300)
    with pytest.raises(SignatureError):
        ours("stripe", {"stripe-signature": header}, b"{}")


def test_stripe_takes_the_first_of_two_timestamps_and_we_refuse_both() -> None:
    header = stripe.WebhookSignature.generate_signature_header("{}", WHSEC_SECRET) + ",t=1"

    assert stripe.WebhookSignature.verify_header("{}", header, WHSEC_SECRET, tolerance=300)
    with pytest.raises(Malformed):
        ours("stripe", {"stripe-signature": header}, b"{}")


def test_stripe_wants_lower_case_hex_and_we_take_any() -> None:
    good = stripe.WebhookSignature.generate_signature_header("{}", WHSEC_SECRET)
    stamp, _, digest = good.partition(",v1=")
    header = f"{stamp},v1={digest.upper()}"

    with pytest.raises(stripe.SignatureVerificationError):
        stripe.WebhookSignature.verify_header("{}", header, WHSEC_SECRET, tolerance=300)
    ours("stripe", {"stripe-signature": header}, b"{}")
