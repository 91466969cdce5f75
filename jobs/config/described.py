"""Entries that describe their provider: secrets and signature settings put where they belong, then the mapping read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jobs.config.mapping import SECTIONS, ProviderMapping, read_mapping
from jobs.config.mapping.events import SIGNATURE_KEYS

#: Names templates give to secrets that have keys of their own in an entry.
TOKEN, WEBHOOK = "token", "webhook"

#: Sections whose names mean something in other entries too, now or later.
_OTHERS_KEYS = ("search", "artifacts")


def signature_settings(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `[….webhook]` says about the signature as the entry's own keys, which win over it."""
    section = entry.get("webhook")
    given = section if isinstance(section, dict) else {}
    named = {f"webhook_{key}": given[key] for key in SIGNATURE_KEYS if key in given}
    return {**named, **{key: value for key, value in entry.items() if key in named}}


def read_described(
    entry: Mapping[str, Any],
    *,
    where: str,
    resolve: Callable[[str, object], str | None],
    own: Mapping[str, str | None],
    scheme: str,
    faults: list[str],
) -> ProviderMapping | None:
    """Read an entry's description.

    Args:
        entry: the provider's table, a preset's keys put in.
        where: its path.
        resolve: the text of a secret, by the key it stands under; None where it cannot be had.
        own: the secrets with keys of their own, by the name templates give them.
        scheme: how its events are signed.
        faults: what is wrong is added to it.
    """
    secrets = {**own, **_read_secrets(entry.get("secrets", {}), where=where, resolve=resolve, faults=faults)}
    for name, text in secrets.items():
        if text is not None and not (text.isascii() and text.isprintable()):
            key = {TOKEN: "api_token", WEBHOOK: "webhook_secrets"}[name] if name in own else f"secrets.{name}"
            faults.append(f"{where}.{key} holds a line break or another character that no header can carry")
    return read_mapping(entry, where=where, secrets=secrets, scheme=scheme, faults=faults)


def section_faults(where: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield a fault for each section in an entry whose adapter knows its provider by itself."""
    for name in entry:
        if name in SECTIONS and name not in _OTHERS_KEYS:
            yield f"{where}.{name} is part of a description; it belongs to adapter 'declarative'"


def _read_secrets(
    table: object, *, where: str, resolve: Callable[[str, object], str | None], faults: list[str]
) -> dict[str, str | None]:
    if not isinstance(table, dict):
        faults.append(f'{where}.secrets must be a table: {{ token = {{ env = "NAME" }} }}')
        return {}
    return {name: resolve(f"secrets.{name}", value) for name, value in table.items()}
