"""What vendors publish, or what their own code computes, as literals: our code must come to the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from jobs.core.errors import Malformed, Mismatch, SignatureError
from jobs.core.signatures import SCHEMES, SchemeOptions, Secret, Verified, parse_secrets, sign, verify
from tests.vectors import WHPK_SECRET, WHSK_SECRET

SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&"
    b"channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&"
    b"response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&"
    b"trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
TWILIO_URL = "https://mycompany.com/myapp.php?foo=1&bar=2"
TWILIO_FORM = b"CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212"
TWILIO_SIGNATURE = "RSOYDt4T1cUTdK1PDd93/VVr8B8="


@dataclass(frozen=True)
class Case:
    """A signed request whose signature somebody else computed."""

    scheme: str
    secret: str
    headers: dict[str, str]
    body: bytes
    at: int
    options: SchemeOptions = field(default_factory=SchemeOptions)
    signs: str | None = None


STANDARD = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330"}
CASES = {
    "standard webhooks v1": Case(
        "standard-webhooks",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        {**STANDARD, "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
        b'{"test": 2432232314}',
        1614265330,
    ),
    "standard webhooks v1a": Case(
        "standard-webhooks",
        WHPK_SECRET,
        {
            **STANDARD,
            "webhook-signature": "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM"
            "+m7TBAg==",
        },
        b'{"test": 2432232314}',
        1614265330,
        signs=WHSK_SECRET,
    ),
    "github": Case(
        "hmac-body",
        "It's a Secret to Everybody",
        {"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
        b"Hello, World!",
        0,
        SchemeOptions(header="X-Hub-Signature-256"),
    ),
    "slack": Case(
        "slack",
        "8f742231b10e8888abcd99yyyzzz85a5",
        {
            "X-Slack-Request-Timestamp": "1531420618",
            "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        },
        SLACK_BODY,
        1531420618,
    ),
    "stripe": Case(
        "stripe",
        "whsec_test",
        {"Stripe-Signature": "t=1700000000,v1=4c15fb2a43f93ef61eaa3e0893866d57cad9cad4223242cfb96f362480cb4021"},
        b'{"id":"evt_1","object":"event"}',
        1700000000,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_published_signature_verifies(case: Case) -> None:
    found = verify(
        case.scheme,
        headers={name.lower(): value for name, value in case.headers.items()},
        body=case.body,
        secrets=parse_secrets(case.scheme, [case.secret]),
        now=datetime.fromtimestamp(case.at, UTC),
        options=case.options,
    )

    assert found.secret_index == 0


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_we_sign_as_published(case: Case) -> None:
    headers = sign(
        case.scheme,
        secret=case.signs or case.secret,
        body=case.body,
        delivery_id=STANDARD["webhook-id"],
        at=datetime.fromtimestamp(case.at, UTC),
        options=case.options,
    )

    assert headers == case.headers


def call(url: str, body: bytes = TWILIO_FORM, *, signature: str = TWILIO_SIGNATURE, **headers: str) -> Verified:
    """Twilio's published request; its token is shorter than any we would let in through a configuration."""
    sent = {"x-twilio-signature": signature, **{name.replace("_", "-"): value for name, value in headers.items()}}
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return verify("twilio", headers=sent, body=body, secrets=(Secret(b"12345"),), now=now, url=url)


@pytest.mark.parametrize("netloc", ["mycompany.com", "mycompany.com:443", "mycompany.com:8443"])
def test_the_published_call_of_twilio_verifies_with_its_port_and_without(netloc: str) -> None:
    assert call(TWILIO_URL.replace("mycompany.com", netloc)) == Verified(0, None, None)


@pytest.mark.parametrize(
    "url",
    [
        "http://mycompany.com/myapp.php?foo=1&bar=2",
        "https://mycompany.com/myapp.php?bar=2&foo=1",
        "https://mycompany.com/myapp.php",
        "https://mycompany.com/myapp.php/?foo=1&bar=2",
    ],
)
def test_a_call_to_another_url_is_refused(url: str) -> None:
    with pytest.raises(Mismatch):
        call(url)


def test_the_order_of_a_form_does_not_matter_and_its_values_do() -> None:
    shuffled = b"&".join(reversed(TWILIO_FORM.split(b"&")))

    call(TWILIO_URL, shuffled)
    with pytest.raises(Mismatch):
        call(TWILIO_URL, TWILIO_FORM.replace(b"1234&From", b"1235&From"))
    with pytest.raises(Malformed):
        call(TWILIO_URL, b"\xff" + TWILIO_FORM)


def test_an_algorithm_twilio_does_not_have_is_refused() -> None:
    with pytest.raises(Malformed):
        call(TWILIO_URL, x_twilio_webhooks_signature_settings="key=k,algorithm=MD5")


def test_a_captured_signature_of_another_body_does_not_open_a_url_that_binds_its_body() -> None:
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # of nothing
    url = f"https://h.test/w?bodySHA256={digest}"
    token = "a-token-of-twilio"
    signature = sign("twilio", secret=token, body=b"", delivery_id="d", at=datetime.now(UTC), url=url)
    secrets = parse_secrets("twilio", [token])
    headers = {"x-twilio-signature": signature["X-Twilio-Signature"]}

    verify("twilio", headers=headers, body=b"", secrets=secrets, now=datetime.now(UTC), url=url)
    for body in (b"{}", b"a=1"):
        with pytest.raises(SignatureError):
            verify("twilio", headers=headers, body=body, secrets=secrets, now=datetime.now(UTC), url=url)


@pytest.mark.parametrize("scheme", sorted(set(SCHEMES) - {"none"}))
def test_every_scheme_has_a_published_vector_or_an_oracle(scheme: str) -> None:
    """Those without a vector are held to their vendor's own code, or say that there is none."""
    by_vector = {case.scheme for case in CASES.values()} | {"twilio"}
    by_oracle = {"elevenlabs", "cloudinary"}
    without = {"hmac-timestamp-body", "fal", "shared-secret"}

    assert scheme in by_vector | by_oracle | without
