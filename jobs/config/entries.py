"""The provider entries of a configuration: names, secrets and values checked, every fault collected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from jobs.config.described import TOKEN, WEBHOOK, read_described, section_faults, signature_settings
from jobs.config.faults import (
    LATER_PROVIDER_KEYS,
    name_faults,
    suggestion,
    validation_faults,
)
from jobs.config.mapping import SECTIONS, ProviderMapping
from jobs.config.mapping.events import RULE_KEYS
from jobs.config.presets import with_preset
from jobs.config.providers import AdapterDefaults, ProviderConfig
from jobs.config.secret_sources import SecretSources
from jobs.core.errors import ConfigError
from jobs.core.signatures import SCHEMES, Secret, parse_secrets

#: What an entry may hold beside the sections that describe its provider.
_KEYS = tuple(name for name in ProviderConfig.model_fields if name != "mapping")
# A provider's name stands in its callback URL.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", re.ASCII)
#: Tables inside an entry, and their keys.
_TABLES = {"poll": ("base", "cap", "overdue_cap"), "budget": ("amount", "currency", "per"), "artifacts": RULE_KEYS}


def read_providers(
    table: object,
    *,
    adapters: Mapping[str, AdapterDefaults],
    secrets: SecretSources,
    faults: list[str],
) -> dict[str, ProviderConfig]:
    """Read `[providers.*]`, adding what is wrong with it to `faults`."""
    if not isinstance(table, dict):
        faults.append("providers must be a table of entries: [providers.<name>]")
        return {}
    entries = {}
    for name, entry in table.items():
        reader = _Entry(f"providers.{name}", adapters=adapters, secrets=secrets)
        config = reader.read(name, entry)
        faults += reader.faults
        if config is not None:
            entries[name] = config
    return entries


class _Entry:
    """Reads one entry, and keeps what was wrong with it."""

    def __init__(self, where: str, *, adapters: Mapping[str, AdapterDefaults], secrets: SecretSources) -> None:
        self.faults: list[str] = []
        self._where = where
        self._adapters = adapters
        self._secrets = secrets

    def read(self, name: str, entry: object) -> ProviderConfig | None:
        """The entry as a value; none where anything about it is wrong."""
        if not _NAME.fullmatch(name):
            self.faults.append(f"{self._where}: a provider's name is 1 to 63 letters, digits, _ or -")
        if not isinstance(entry, dict):
            self.faults.append(f"{self._where} must be a table")
            return None
        self.faults += self._key_faults(entry)
        if (values := self._prepare(entry)) is None:
            return None
        try:
            config = ProviderConfig.model_validate(values)
        except ValidationError as error:
            self.faults += validation_faults(f"{self._where}.", error)
            return None
        return None if self.faults else config

    def _key_faults(self, entry: dict[str, object]) -> Iterator[str]:
        if self._is_described(entry):
            later = [key for key in LATER_PROVIDER_KEYS if key not in SECTIONS]
            yield from name_faults(f"{self._where}.", entry, known=(*_KEYS, *SECTIONS), later=later)
        else:
            yield from section_faults(self._where, entry)
            names = [name for name in entry if name not in SECTIONS or name in (*_KEYS, *LATER_PROVIDER_KEYS)]
            yield from name_faults(f"{self._where}.", names, known=_KEYS, later=LATER_PROVIDER_KEYS)
        for table, known_in in _TABLES.items():
            is_section = table in SECTIONS and self._is_described(entry)  # its mapping names what it does not know
            if isinstance(value := entry.get(table), dict) and not is_section:
                yield from name_faults(f"{self._where}.{table}.", value, known=known_in)

    def _prepare(self, entry: dict[str, object]) -> dict[str, object] | None:
        """The entry's known keys, with the adapter's defaults and the secrets' values put in."""
        if (adapter := self._adapter(entry.get("adapter"))) is None:
            return None
        if adapter.is_described:
            entry = with_preset(str(entry["adapter"]), entry)
            entry = {**entry, **signature_settings(entry)}
        values = {key: value for key, value in entry.items() if key in _KEYS}
        values |= _known_of_tables(values)
        if adapter.base_url is None and adapter.needs_base_url and "base_url" not in values:
            self.faults.append(f"{self._where}.base_url is missing: where does this provider listen?")
        values.setdefault("base_url", adapter.base_url or "http://missing.invalid")
        scheme = str(values.setdefault("webhook_scheme", adapter.webhook_scheme))
        if scheme == adapter.webhook_scheme:
            values = {**adapter.webhook_settings, **values}
        texts = self._texts(values.get("webhook_secrets", []))
        values["webhook_secrets"] = self._webhook_secrets(scheme, texts)
        if "api_token" in values:
            values["api_token"] = self._secret("api_token", values["api_token"])
        if adapter.is_described:
            values.pop("search", None)  # a section here, not the simulator's key
            values["mapping"] = self._mapping(entry, values, texts)
        return values

    def _mapping(
        self, entry: Mapping[str, object], values: Mapping[str, object], texts: list[str | None]
    ) -> ProviderMapping | None:
        """What the entry's sections say, with the secrets that have keys of their own under the names of templates."""
        own: dict[str, str | None] = {TOKEN: values["api_token"]} if "api_token" in values else {}  # type: ignore[dict-item]
        if texts:
            own[WEBHOOK] = texts[0]
        return read_described(
            entry,
            where=self._where,
            resolve=self._secret,
            own=own,
            scheme=str(values["webhook_scheme"]),
            faults=self.faults,
        )

    def _is_described(self, entry: Mapping[str, object]) -> bool:
        adapter = self._adapters.get(str(entry.get("adapter")))
        return adapter is not None and adapter.is_described

    def _adapter(self, name: object) -> AdapterDefaults | None:
        if isinstance(name, str) and name in self._adapters:
            return self._adapters[name]
        known = ", ".join(sorted(self._adapters))
        if name is None:
            self.faults.append(f"{self._where}.adapter is missing; known: {known}")
        else:
            meant = suggestion(str(name), self._adapters) or f"; known: {known}"
            self.faults.append(f"{self._where}.adapter {name!r} is unknown{meant}")
        return None

    def _texts(self, value: object) -> list[str | None]:
        """The webhook secrets as text; None for each that cannot be had."""
        if isinstance(value, list):
            return [self._secret(f"webhook_secrets[{number}]", item) for number, item in enumerate(value)]
        self.faults.append(f'{self._where}.webhook_secrets must be a list, newest first: [{{ env = "NAME" }}]')
        return []

    def _webhook_secrets(self, scheme: str, named: list[str | None]) -> tuple[Secret, ...]:
        where = f"{self._where}.webhook_secrets"
        if scheme not in SCHEMES:
            meant = suggestion(scheme, SCHEMES) or f"; known: {', '.join(sorted(SCHEMES))}"
            self.faults.append(f"{self._where}.webhook_scheme {scheme!r} is unknown{meant}")
            return ()
        texts = [text for text in named if text is not None]
        try:
            return parse_secrets(scheme, texts, where=where)
        except ConfigError as error:
            self.faults += error.faults
            return ()

    def _secret(self, key: str, value: object) -> str | None:
        try:
            return self._secrets.resolve(value)
        except ValueError as fault:
            self.faults.append(f"{self._where}.{key} {fault}")
            return None


def _known_of_tables(values: dict[str, object]) -> dict[str, object]:
    """The entry's tables without the keys that were complained about already."""
    tables = {name: table for name in _TABLES if isinstance(table := values.get(name), dict)}
    return {name: {key: table[key] for key in _TABLES[name] if key in table} for name, table in tables.items()}
