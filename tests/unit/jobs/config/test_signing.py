"""What an entry says about signatures: held to its scheme, its secrets read as the scheme reads them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from jobs.config.loading import load
from jobs.config.providers import ProviderConfig
from jobs.config.signing import SCHEME_SETTINGS
from jobs.core.errors import ConfigError
from jobs.core.signatures import SCHEMES, SchemeOptions
from jobs.core.signatures.scheme import KeyKind
from tests.vectors import FAL_PUBLIC, TEXT_SECRET, WHPK_SECRET, WHSEC_SECRET, WHSK_SECRET


def read(tmp_path: Path, entry: str, *, adapter: str = "events") -> ProviderConfig:
    file = tmp_path / "homing.toml"
    address = 'base_url = "http://127.0.0.1:9000"' if adapter == "simulator" else ""
    file.write_text(f'[providers.sender]\nadapter = "{adapter}"\n{address}\n{entry}')
    return load({"HOMING_CONFIG": str(file)}).providers["sender"]


def faults(tmp_path: Path, entry: str, *, adapter: str = "events") -> str:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, entry, adapter=adapter)
    return "\n".join(refused.value.faults)


def test_each_option_of_a_scheme_has_its_setting() -> None:
    options = {name for scheme in SCHEMES.values() for name in scheme.reads}

    assert options == set(SCHEME_SETTINGS.values()) == set(SchemeOptions.__dataclass_fields__)


def test_a_sender_of_its_own_way_is_described_by_settings(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        f"""
        webhook_scheme = "hmac-timestamp-body"
        webhook_secrets = ["{TEXT_SECRET}"]
        webhook_header = "X-DeAPI-Signature"
        webhook_timestamp_header = "X-DeAPI-Timestamp"
        webhook_prefix = ""
        webhook_encoding = "base64"
        webhook_tolerance = "10m"
        webhook_timestamp_unit = "ms"
        webhook_delivery_id_header = "X-DeAPI-Delivery-Id"
        """,
    )

    assert config.scheme_options == SchemeOptions(
        tolerance=timedelta(minutes=10),
        timestamp_unit="ms",
        header="X-DeAPI-Signature",
        timestamp_header="X-DeAPI-Timestamp",
        prefix="",
        encoding="base64",
        delivery_id_header="X-DeAPI-Delivery-Id",
    )


def test_an_entry_that_says_nothing_takes_its_adapters_way_of_signing(tmp_path: Path) -> None:
    config = read(tmp_path, f'webhook_secrets = ["{TEXT_SECRET}"]', adapter="mux")

    assert (config.webhook_scheme, config.scheme_options.header) == ("stripe", "Mux-Signature")


def test_another_scheme_than_the_adapters_takes_none_of_it(tmp_path: Path) -> None:
    entry = f'webhook_scheme = "hmac-body"\nwebhook_secrets = ["{TEXT_SECRET}"]'

    assert read(tmp_path, entry, adapter="heygen").scheme_options.header == "Heygen-Signature"
    assert read(tmp_path, entry, adapter="mux").scheme_options.header is None


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ('webhook_scheme = "stripe"\nwebhook_prefix = "v1="', "webhook_prefix means nothing to scheme 'stripe'"),
        ('webhook_scheme = "slack"\nwebhook_header = "X-S"', "webhook_header means nothing to scheme 'slack'"),
        ('webhook_scheme = "hmac-body"\nwebhook_tolerance = "5m"', "it is read by standard-webhooks, stripe"),
        ('webhook_scheme = "stripe"\njwks_url = "https://keys.test/jwks"', "which has no key set"),
        ('webhook_scheme = "hmac-body"\nwebhook_encoding = "base32"', "webhook_encoding"),
        ('webhook_scheme = "hmac-body"\nwebhook_header = "two words"', "webhook_header"),
        ('webhook_scheme = "fal"\njwks_url = "ftp://keys.test"', "jwks_url"),
        ('webhook_scheme = "stripe"\nwebhook_tolerance = "0s"', "longer than 0"),
        ('webhook_scheme = "none"', "proves nothing"),
        ('webhook_scheme = "strip"', "did you mean stripe?"),
    ],
)
def test_what_could_only_be_a_mistake_is_told(tmp_path: Path, entry: str, fault: str) -> None:
    assert fault in faults(tmp_path, entry)


@pytest.mark.parametrize(
    ("scheme", "secret"),
    [
        *[("standard-webhooks", text) for text in ("whsec_xyz!", "whsec_", f"v1,{WHSEC_SECRET}", WHSK_SECRET)],
        *[("fal", text) for text in ("c2hvcnQ=", "caf\xe9", FAL_PUBLIC[:-1])],
        *[
            (name, text)
            for name in ("slack", "twilio", "cloudinary", "elevenlabs")
            for text in ("tiny-01", "v1,xxxxxxxx")
        ],
    ],
)
def test_a_secret_that_cannot_be_one_is_told_and_not_shown(tmp_path: Path, scheme: str, secret: str) -> None:
    """F09."""
    told = faults(tmp_path, f'webhook_scheme = "{scheme}"\nwebhook_secrets = ["{secret}"]')

    assert "providers.sender.webhook_secrets: secret 1" in told
    assert secret == "whsec_" or secret not in told


def test_a_secret_for_a_scheme_that_signs_nothing_is_a_fault(tmp_path: Path) -> None:
    entry = f'webhook_scheme = "none"\nwebhook_secrets = ["{TEXT_SECRET}"]'

    assert "signs nothing" in faults(tmp_path, entry, adapter="simulator")


def test_shared_secrets_and_public_keys_may_stand_side_by_side(tmp_path: Path) -> None:
    config = read(tmp_path, f'webhook_secrets = ["{WHPK_SECRET}", "{WHSEC_SECRET}"]')

    assert [secret.kind for secret in config.webhook_secrets] == [KeyKind.PUBLIC, KeyKind.SHARED]


def test_public_keys_are_fetched_unless_they_are_configured(tmp_path: Path) -> None:
    fal = 'webhook_scheme = "fal"\n'

    assert read(tmp_path, fal).key_set_url == "https://rest.fal.ai/.well-known/jwks.json"
    assert read(tmp_path, fal + 'jwks_url = "https://keys.test/jwks"').key_set_url == "https://keys.test/jwks"
    assert read(tmp_path, fal + f'webhook_secrets = ["{FAL_PUBLIC}"]').key_set_url is None
    assert read(tmp_path, f'webhook_secrets = ["{WHSEC_SECRET}"]').key_set_url is None


def test_the_field_with_the_delivery_id_is_for_senders_of_events(tmp_path: Path) -> None:
    field = 'webhook_delivery_id_field = "event.id"'

    assert read(tmp_path, field).webhook_delivery_id_field == "event.id"
    assert "adapter 'events'" in faults(tmp_path, field, adapter="simulator")
    assert "webhook_delivery_id_field" in faults(tmp_path, 'webhook_delivery_id_field = "a..b"')
