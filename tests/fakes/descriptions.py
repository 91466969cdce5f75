"""Entries of homing.toml as a test writes them, read as a fleet would."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from jobs.config.entries import read_providers
from jobs.config.providers import ADAPTERS, ProviderConfig
from jobs.config.secret_sources import SecretSources
from jobs.core.errors import ConfigError

#: The simulator's own dialect, told instead of coded.
SIMULATOR = """
[providers.acme]
adapter = "declarative"
auth = { header = "Authorization", value = "Bearer ${secret.token}" }
secrets = { token = "t0ken" }

[providers.acme.submit]
call = "POST /jobs"
headers = { Idempotency-Key = "${attempt.key}" }
id = "id"
[providers.acme.submit.body]
model = "${input.model}"
input = "${omit(input, 'model')}"
callback_url = "${callback_url}"
reference = "${attempt.token}"

[providers.acme.search]
call = ["GET /jobs?reference=${attempt.token}", "GET /jobs?idempotency_key=${attempt.key}"]
id = "jobs[].id"

[providers.acme.status]
call = "GET /jobs/${job.provider_job_id}"
state = "status"
failed_if = "status == 'failed'"
error = "error"
output = "output"
progress = "progress"
cost = "cost"
[providers.acme.status.states]
pending = ["queued"]
running = ["processing"]
succeeded = ["Succeeded "]
failed = ["failed"]
canceled = ["canceled"]

[providers.acme.cancel]
call = "POST /jobs/${job.provider_job_id}/cancel"

[providers.acme.webhook]
scheme = "standard-webhooks"
run = "@"
job_id = "job"
delivery_id = "id"

[providers.acme.artifacts]
urls = "artifacts"
expires = "1h"
refresh = "status"
"""
KEYS = {
    "replay": '[providers.acme.submit.idempotency]\nwindow = "24h"\n',
    "reject": (
        '[providers.acme.submit.idempotency]\nwindow = "24h"\nreuse = "reject"\n'
        "rejected_if = \"error.code == 'idempotency_key_reused'\"\n"
    ),
    "none": "",
}


def faults_of(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    """What is wrong with the entries of a TOML text."""
    faults: list[str] = []
    _read(text, environ or {}, faults)
    return faults


def entry_of(text: str, environ: Mapping[str, str] | None = None, **changes: object) -> ProviderConfig:
    """The only entry of a TOML text, with some of its own keys changed.

    Raises:
        ConfigError: Everything that is wrong with it.
    """
    faults: list[str] = []
    entries = _read(text, environ or {}, faults, changes)
    if faults:
        raise ConfigError(faults)
    (entry,) = entries.values()
    return entry


def simulator_entry(url: str, keys: str = "replay") -> ProviderConfig:
    """An account at a simulator, described."""
    return entry_of(SIMULATOR + KEYS[keys], base_url=url)


def _read(
    text: str, environ: Mapping[str, str], faults: list[str], changes: Mapping[str, object] | None = None
) -> dict[str, ProviderConfig]:
    table = {name: {**entry, **(changes or {})} for name, entry in tomllib.loads(text)["providers"].items()}
    secrets = SecretSources(environ, Path.cwd(), plain_allowed=True)
    return read_providers(table, adapters=ADAPTERS, secrets=secrets, faults=faults)
