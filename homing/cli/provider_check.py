"""Checks of a provider entry, from its secrets to an event that finds its way in."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from homing.cli.call_faults import fault_of
from homing.cli.capabilities import assumed
from homing.client.address import find_url
from homing.composition import build_entries
from jobs.clock import Clock, SystemClock
from jobs.config.faults import suggestion
from jobs.config.loading import Configuration
from jobs.core.errors import ConfigError, JobsError, Unusable
from jobs.core.signatures import SCHEMES, verify
from jobs.core.signatures.key_sets import parse_key_set
from jobs.core.signatures.scheme import Outgoing
from jobs.net.http import HttpClient
from jobs.services.runtime import ProviderEntry

SELF_TEST_ID = "evt_homing_self_test"
#: An event that names no job, marked as a test: it is stored as ignored, and a repeat is a duplicate.
SELF_TEST = {"id": SELF_TEST_ID, "type": "homing.self_test", "livemode": False}
_BODY = json.dumps(SELF_TEST).encode()
_NOWHERE = "no fleet to send it to: start one with `homing up`, or set HOMING_PUBLIC_URL to where yours is called"
_SIGNED_QUERY = f"?bodySHA256={hashlib.sha256(_BODY).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Result:
    """One check of one entry."""

    provider: str
    check: str
    ok: bool
    detail: str

    def document(self) -> dict[str, Any]:
        """The result for machines."""
        return asdict(self)


def check_providers(
    configuration: Configuration, *, only: str | None = None, clock: Clock | None = None
) -> list[Result]:
    """Check every entry, or one.

    Raises:
        ConfigError: there is no entry of that name.
    """
    ticking = clock or SystemClock()
    entries = build_entries(configuration, clock=ticking)
    if only is not None and only not in entries:
        raise ConfigError(f"there is no provider {only!r} in homing.toml{suggestion(only, entries)}")
    receiver = _receiver(configuration)
    chosen = [entry for name, entry in entries.items() if only in (None, name)]
    return [result for entry in chosen for result in _check(entry, receiver, ticking)]


def _receiver(configuration: Configuration) -> str | None:
    """Where webhooks come in: what providers call, else the fleet that other commands would talk to; None: nowhere."""
    if os.environ.get("HOMING_PUBLIC_URL"):
        return configuration.settings.public_url
    return find_url(os.environ)


def _check(entry: ProviderEntry, receiver: str | None, clock: Clock) -> Iterator[Result]:
    yield Result(entry.name, "configuration", ok=True, detail=f"adapter {entry.config.adapter}")
    if entry.config.mapping is not None:
        yield Result(entry.name, "description", ok=True, detail=assumed(entry.adapter.capabilities))
    client = HttpClient()
    try:
        yield _secrets(entry, clock) if entry.config.key_set_url is None else _key_set(entry, client)
        if not entry.adapter.capabilities.receives_only:
            yield _reachable(entry, client)
        if entry.config.webhook_secrets and entry.config.webhook_secrets[0].can_sign:
            yield _self_test(entry, client, receiver=receiver, clock=clock)
    finally:
        client.close()


def _secrets(entry: ProviderEntry, clock: Clock) -> Result:
    """Each secret signs what it verifies; without one every webhook is answered 503."""
    config = entry.config
    if config.mapping is not None and config.mapping.webhook is None:
        return Result(entry.name, "secrets", ok=True, detail="no webhooks are described: jobs come home by poll")
    if not SCHEMES[config.webhook_scheme].takes_secrets:
        return Result(entry.name, "secrets", ok=True, detail=f"webhooks by scheme {config.webhook_scheme} have none")
    if not config.webhook_secrets:
        return Result(entry.name, "secrets", ok=False, detail="no webhook_secrets: webhooks are answered 503")
    for number, secret in enumerate(config.webhook_secrets):
        if secret.can_sign:  # of a public key only its sender can tell whether it is the right one
            verify(
                config.webhook_scheme,
                headers=_signed(entry, number, clock, url=_SIGNED_QUERY),
                body=_BODY,
                secrets=config.webhook_secrets,
                now=clock.now(),
                options=config.scheme_options,
                url=_SIGNED_QUERY,
            )
    token = "with" if config.api_token else "without"
    return Result(
        entry.name, "secrets", ok=True, detail=f"{len(config.webhook_secrets)} for webhooks, {token} api_token"
    )


def _key_set(entry: ProviderEntry, client: HttpClient) -> Result:
    """The keys its sender publishes can be had; until they are, every webhook is answered 503."""
    url = str(entry.config.key_set_url)
    try:
        answer = client.request("GET", url)
    except JobsError as error:
        return Result(entry.name, "secrets", ok=False, detail=f"{url}: {fault_of(error)}")
    try:
        keys = parse_key_set(answer.body) if answer.is_success else ()
    except Unusable as error:
        return Result(entry.name, "secrets", ok=False, detail=f"{url}: {error.detail}")
    detail = f"{url} has {len(keys)} keys" if keys else f"{url} answered {answer.status}"
    return Result(entry.name, "secrets", ok=bool(keys), detail=detail)


def _reachable(entry: ProviderEntry, client: HttpClient) -> Result:
    try:
        answer = client.request("GET", entry.config.base_url)
    except JobsError as error:
        detail = f"{entry.config.base_url}: {fault_of(error)}: is base_url right, and may this machine reach it?"
        return Result(entry.name, "reachable", ok=False, detail=detail)
    return Result(entry.name, "reachable", ok=True, detail=f"{entry.config.base_url} answers ({answer.status})")


def _self_test(entry: ProviderEntry, client: HttpClient, *, receiver: str | None, clock: Clock) -> Result:
    if receiver is None:
        return Result(entry.name, "self-test", ok=False, detail=_NOWHERE)
    url = f"{receiver}/webhooks/{entry.name}"
    if entry.config.webhook_scheme == "twilio":  # binds a body that is no form by the URL it is sent to
        url += _SIGNED_QUERY
    headers = {"Content-Type": "application/json", **_signed(entry, 0, clock, url=url)}
    try:
        answer = client.request("POST", url, headers=headers, body=_BODY)
    except JobsError as error:
        detail = f"{url}: {fault_of(error)}: is the fleet up, and HOMING_PUBLIC_URL its address?"
        return Result(entry.name, "self-test", ok=False, detail=detail)
    ok = answer.status == 200
    return Result(entry.name, "self-test", ok=ok, detail=f"{url}: {_meaning(answer.status)}")


def _meaning(status: int) -> str:
    known = {
        200: "a signed event gets in",
        403: "the fleet refused the signature: it runs with another secret; restart it",
        404: "the fleet does not know this provider: restart it with this configuration",
        503: "the fleet cannot store webhooks now; `homing doctor` says why",
    }
    return known.get(status, f"answered {status}: is something else in front of the fleet?")


def _signed(entry: ProviderEntry, secret: int, clock: Clock, *, url: str) -> dict[str, str]:
    """Headers of the test event; lower case, as a receiver reads them."""
    message = Outgoing(
        secret=entry.config.webhook_secrets[secret],
        body=_BODY,
        delivery_id=SELF_TEST_ID,
        at=clock.now(),
        options=entry.config.scheme_options,
        url=url,
    )
    headers = SCHEMES[entry.config.webhook_scheme].sign(message)
    return {name.lower(): value for name, value in headers.items()}
