"""Secrets: a typo is a fault at start, told in words that do not hold the secret."""

from __future__ import annotations

import pytest

from jobs.core.errors import ConfigError
from jobs.core.signatures import SCHEMES, parse_secrets
from tests.vectors import TEXT_SECRET, WHSEC_SECRET

KEY = b"field-log-test-secret-01"


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
        ("whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=", "Ed25519"),
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


@pytest.mark.parametrize("scheme", ["stripe", "hmac-body"])
def test_a_text_secret_is_its_own_key(scheme: str) -> None:
    plain, prefixed = parse_secrets(scheme, [f"{TEXT_SECRET}\n", WHSEC_SECRET])

    assert plain.key == KEY
    assert prefixed.key == WHSEC_SECRET.encode()


@pytest.mark.parametrize("scheme", ["stripe", "hmac-body"])
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


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_a_secret_never_shows_itself(scheme: str) -> None:
    (secret,) = parse_secrets(scheme, [WHSEC_SECRET])

    assert "key" not in repr(secret)
    assert "field-log" not in repr(secret)
