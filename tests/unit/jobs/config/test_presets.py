"""Presets: entries without credentials, that an entry of the same adapter completes or changes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.config.presets import merged, preset_names, read_preset
from jobs.config.providers import ADAPTERS
from jobs.core.states import JobState
from tests.fakes.descriptions import entry_of, faults_of

HF = '[providers.gpu]\nadapter = "hf-jobs"\napi_token = "t"\nvalues = { namespace = "acme" }\n'
BFL = '[providers.images]\nadapter = "bfl"\napi_token = "t"\nwebhook_secrets = ["a-secret-of-some-length-123"]\n'


def test_each_preset_is_an_adapter() -> None:
    assert {"bfl", "hf-jobs", "higgsfield", "luma", "together"} <= set(preset_names())
    assert all(ADAPTERS[name].is_described for name in preset_names())


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_alone_lacks_nothing_but_what_is_the_accounts_own(name: str) -> None:
    faults = faults_of(f'[providers.p]\nadapter = "{name}"\n')

    assert faults
    own = ("secret.token is unknown; set api_token", "secret.webhook is unknown; set webhook_secrets", "values.namesp")
    assert [fault for fault in faults if not any(words in fault for words in own)] == []


def test_an_entry_wins_key_by_key() -> None:
    text = (
        BFL + 'base_url = "https://api.eu.bfl.ai/"\nconcurrency = 6\n'
        '[providers.images.status.states]\nrunning = ["Dreaming"]\n[providers.images.artifacts]\nexpires = "5m"\n'
    )

    entry = entry_of(text)

    assert entry.mapping is not None
    assert (entry.base_url, entry.concurrency) == ("https://api.eu.bfl.ai", 6)
    assert entry.mapping.status.run.states["dreaming"] is JobState.RUNNING
    assert entry.mapping.status.run.states["ready"] is JobState.SUCCEEDED
    assert "reasoning" not in entry.mapping.status.run.states
    assert entry.mapping.artifacts.expires == timedelta(minutes=5)
    assert entry.mapping.status.run.urls is not None


def test_the_accounts_own_keys_are_secrets_of_its_templates() -> None:
    mapping = entry_of(BFL).mapping

    assert mapping is not None
    assert mapping.secrets == {"token": "t", "webhook": "a-secret-of-some-length-123"}
    assert "a-secret" not in repr(entry_of(BFL))


def test_a_preset_says_how_its_provider_signs_and_paces() -> None:
    assert entry_of(BFL).scheme_options.header == "X-BFL-Signature"
    assert entry_of(BFL).concurrency == 24
    assert entry_of(HF).deadline == timedelta(days=1)


def test_a_mistake_in_what_an_entry_adds_is_named() -> None:
    assert faults_of(HF + '[providers.gpu.status]\nstate = "a["\n') == [
        "providers.gpu.status.state is not JMESPath: it ends too early, after 'a['"
    ]


def test_tables_are_joined_and_anything_else_is_replaced() -> None:
    below = {"a": {"b": 1, "c": [1]}, "d": {"e": 1}}

    assert merged(below, {"a": {"c": [2]}, "d": "x"}) == {"a": {"b": 1, "c": [2]}, "d": "x"}
    assert below == {"a": {"b": 1, "c": [1]}, "d": {"e": 1}}


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_holds_no_credential(name: str) -> None:
    assert not {"api_token", "secrets", "webhook_secrets", "adapter"} & set(read_preset(name))
