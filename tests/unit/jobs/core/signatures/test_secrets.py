"""Secrets: a typo is a fault at start, told in words that do not hold the secret."""

from __future__ import annotations

import base64

import pytest

from jobs.core.errors import ConfigError
from jobs.core.signatures import SCHEMES, parse_secrets, sign
from jobs.core.signatures.scheme import KeyKind
from tests.vectors import FAL_PUBLIC, NOW, TEXT_SECRET, WHPK_SECRET, WHSEC_SECRET, WHSK_SECRET

KEY = b"field-log-test-secret-01"
#: Where the secret is used as its own text.
TEXT_SCHEMES = sorted(set(SCHEMES) - {"standard-webhooks", "fal", "none"})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("whsec_xyz!", "not base64"),
        ("whsec_", "nothing after whsec_"),
        ("", "empty"),
        (" \n", "empty"),
        (f"v1,{WHSEC_SECRET}", "begins with 'v1,'"),
        (WHSEC_SECRET[:20] + " " + WHSEC_SECRET[20:], "not base64"),
        (WHSEC_SECRET[:20] + "\n" + WHSEC_SECRET[20:], "not base64"),
        (WHSEC_SECRET[:-1], "not base64"),
        ("whsec_c2hvcnQ=", "only 5 bytes"),
        ("whsec_caf\xe9", "not base64"),
        (WHSK_SECRET, "the sender's private key"),
        ("whpk_", "nothing after whpk_"),
        ("whpk_c2hvcnQ=", "is 5 bytes long when decoded; an Ed25519 key has 32"),
        ("whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4", "not base64"),
    ],
)
def test_a_wrong_standard_webhooks_secret_is_refused_by_name_of_its_fault(text: str, fault: str) -> None:
    """F09."""
    with pytest.raises(ConfigError, match=fault) as refused:
        parse_secrets("standard-webhooks", [text])

    assert len(text.strip()) < 8 or text.strip() not in str(refused.value)


@pytest.mark.parametrize("text", [WHSEC_SECRET, f"{WHSEC_SECRET}\n", f"  {WHSEC_SECRET}\r\n", WHSEC_SECRET[6:]])
def test_outer_blanks_are_trimmed_and_the_prefix_may_be_left_out(text: str) -> None:
    """F09: secrets files end in a newline."""
    (secret,) = parse_secrets("standard-webhooks", [text])

    assert secret.key == KEY


@pytest.mark.parametrize("scheme", TEXT_SCHEMES)
def test_a_text_secret_is_its_own_key(scheme: str) -> None:
    plain, prefixed = parse_secrets(scheme, [f"{TEXT_SECRET}\n", WHSEC_SECRET])

    assert plain.key == KEY
    assert prefixed.key == WHSEC_SECRET.encode()


@pytest.mark.parametrize("scheme", TEXT_SCHEMES)
@pytest.mark.parametrize(
    "text", ["", "whsec_", f"v1,{WHSEC_SECRET}", "first\nsecond-line", "short", "x" * 8 + "\ud800"]
)
def test_a_wrong_text_secret_is_refused(scheme: str, text: str) -> None:
    """F09."""
    with pytest.raises(ConfigError):
        parse_secrets(scheme, [text])


def test_all_faults_are_told_together_and_by_position() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_secrets("standard-webhooks", ["", WHSEC_SECRET, "whsec_xyz!"], where="providers.renders")

    first, second = refused.value.faults
    assert first == "providers.renders: secret 1 is empty"
    assert second.startswith("providers.renders: secret 3 is not base64")


@pytest.mark.parametrize("text", [FAL_PUBLIC, FAL_PUBLIC + "=", f"{FAL_PUBLIC}\n", WHPK_SECRET.removeprefix("whpk_")])
def test_a_public_key_may_be_base64_or_base64url_padded_or_not(text: str) -> None:
    (secret,) = parse_secrets("fal", [text])

    assert secret.kind is KeyKind.PUBLIC
    assert not secret.can_sign
    assert secret.key.hex().startswith("d52880e28f61caa4")


@pytest.mark.parametrize("text", ["", "not base64!", "c2hvcnQ=", FAL_PUBLIC[:-1], "caf\xe9"])
def test_a_wrong_public_key_is_refused(text: str) -> None:
    """F09."""
    with pytest.raises(ConfigError):
        parse_secrets("fal", [text])


def test_a_public_key_signs_nothing() -> None:
    with pytest.raises(ValueError, match="signs nothing"):
        sign("standard-webhooks", secret=WHPK_SECRET, body=b"", delivery_id="d", at=NOW)


def test_a_private_key_with_anothers_public_key_behind_it_is_refused() -> None:
    mixed = "whsk_" + base64.b64encode(base64.b64decode(WHSK_SECRET[5:])[:32] + b"x" * 32).decode()

    with pytest.raises(ValueError, match="do not belong together"):
        sign("standard-webhooks", secret=mixed, body=b"", delivery_id="d", at=NOW)


def test_a_scheme_that_signs_nothing_takes_no_secret() -> None:
    with pytest.raises(ConfigError, match="signs nothing"):
        parse_secrets("none", [TEXT_SECRET])


@pytest.mark.parametrize(
    ("scheme", "text"),
    [("standard-webhooks", WHSEC_SECRET), ("standard-webhooks", WHPK_SECRET), ("fal", FAL_PUBLIC)]
    + [(scheme, TEXT_SECRET) for scheme in TEXT_SCHEMES],
)
def test_a_secret_never_shows_itself(scheme: str, text: str) -> None:
    (secret,) = parse_secrets(scheme, [text])

    assert "key" not in repr(secret)
    assert "field-log" not in repr(secret)
