"""A bad configuration names all its faults, and never a secret."""

from __future__ import annotations

from datetime import timedelta

import pytest

from homing.simulator import SimulatorConfig
from jobs.core.errors import ConfigError


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        SimulatorConfig(
            faults="mild",
            idempotency="maybe",  # type: ignore[arg-type]
            webhook_scheme="morse",
            port=70_000,
            time_scale=0,
            artifact_ttl=timedelta(0),
        )

    for word in ("mild", "maybe", "morse", "port", "time_scale", "artifact_ttl"):
        assert word in str(caught.value)


def test_a_bad_secret_is_refused_without_being_shown() -> None:
    with pytest.raises(ConfigError, match="webhook_secret") as caught:
        SimulatorConfig(webhook_secret="whsec_tooshort")

    assert "tooshort" not in str(caught.value)


def test_secrets_are_not_shown() -> None:
    assert "hush" not in repr(SimulatorConfig(api_token="hush"))
    assert "whsec_" not in repr(SimulatorConfig())
