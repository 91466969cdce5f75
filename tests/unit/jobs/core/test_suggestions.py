"""What a person probably meant."""

from __future__ import annotations

import pytest

from jobs.core.suggestions import did_you_mean

KNOWN = ["webhook_scheme", "webhook_secrets", "base_url", "HOMING_REDIS_URL"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("webhook_secret", "webhook_secrets"),
        ("baseurl", "base_url"),
        ("homing_redis_uri", "HOMING_REDIS_URL"),
        ("BASE_URL", "base_url"),
        ("zzz", None),
        ("", None),
    ],
)
def test_the_nearest_known_name_is_suggested(written: str, meant: str | None) -> None:
    assert did_you_mean(written, KNOWN) == meant


def test_nothing_is_suggested_where_nothing_is_known() -> None:
    assert did_you_mean("anything", []) is None
