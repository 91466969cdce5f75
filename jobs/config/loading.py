"""Reads a whole configuration, environment and TOML file, and reports every fault of it at once."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from jobs.config.entries import read_providers
from jobs.config.faults import LATER_TABLES, LATER_VARIABLES, name_faults, validation_faults
from jobs.config.lines import with_lines
from jobs.config.providers import ADAPTERS, AdapterDefaults, ProviderConfig
from jobs.config.secret_sources import SecretSources
from jobs.config.settings import CLIENT_VARIABLES, PREFIX, Settings
from jobs.core.errors import ConfigError

_TABLES = ("providers", "plugins")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything an operator chose.

    Attributes:
        providers: by name.
        plugins: modules to import, which register handlers.
        warnings: what is allowed and probably not meant.
    """

    settings: Settings
    providers: Mapping[str, ProviderConfig] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def load(environ: Mapping[str, str], *, adapters: Mapping[str, AdapterDefaults] = ADAPTERS) -> Configuration:
    """Read the configuration.

    Args:
        environ: the process's environment.
        adapters: the adapters an entry may name.

    Raises:
        ConfigError: every fault found, in settings and file.
    """
    faults = list(_variable_faults(environ))
    settings = _read_settings(environ, faults)
    path = Path(environ.get(f"{PREFIX}CONFIG") or Settings.model_fields["config"].default).expanduser()
    text = _read_text(path, faults, must_exist=bool(environ.get(f"{PREFIX}CONFIG")))
    tables = _parse(text, path, faults)
    is_production = environ.get(f"{PREFIX}ENV") == "production"
    secrets = SecretSources(environ, path.absolute().parent, plain_allowed=not is_production)
    inside = list(name_faults("", tables, known=_TABLES, later=LATER_TABLES))
    providers = read_providers(tables.get("providers", {}), adapters=adapters, secrets=secrets, faults=inside)
    plugins = _read_plugins(tables.get("plugins", {}), inside)
    faults += with_lines(inside, text=text, name=path.name)
    if settings is not None and settings.is_production:
        faults += _insecure(settings)
    if faults or settings is None:
        raise ConfigError(faults)
    return Configuration(settings, providers, plugins, tuple(_warnings(settings)))


def _variable_faults(environ: Mapping[str, str]) -> Iterator[str]:
    known = [*(PREFIX + name.upper() for name in Settings.model_fields), *CLIENT_VARIABLES]
    ours = (name for name in environ if name.upper().startswith(PREFIX))
    yield from name_faults("", ours, known=known, later=LATER_VARIABLES)


def _read_settings(environ: Mapping[str, str], faults: list[str]) -> Settings | None:
    try:
        return Settings.read(environ)
    except ValidationError as error:
        for fault in validation_faults("", error):
            name, _, rest = fault.partition(":")
            faults.append(f"{PREFIX}{name.upper()}:{rest}")
        return None


def _read_text(path: Path, faults: list[str], *, must_exist: bool) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if must_exist:
            faults.append(f"{PREFIX}CONFIG names {path}, which does not exist")
    except (OSError, UnicodeDecodeError) as error:
        faults.append(f"{path} cannot be read: {error}")
    return ""


def _parse(text: str, path: Path, faults: list[str]) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        faults.append(f"{path} cannot be read: {error}")
        return {}


def _read_plugins(table: object, faults: list[str]) -> tuple[str, ...]:
    if not isinstance(table, dict):
        faults.append('plugins must be a table: [plugins] with modules = ["my_module"]')
        return ()
    faults += name_faults("plugins.", table, known=("modules",))
    modules = table.get("modules", [])
    if not isinstance(modules, list) or not all(_is_module_name(name) for name in modules):
        faults.append('plugins.modules must be a list of module names, like ["my_package.handlers"]')
        return ()
    return tuple(modules)


def _is_module_name(name: object) -> bool:
    return isinstance(name, str) and all(part.isidentifier() for part in name.split("."))


def _insecure(settings: Settings) -> Iterator[str]:
    """What `HOMING_ENV=production` refuses; plain-text secrets are found where they are read."""
    if not settings.secret_key:
        yield "HOMING_SECRET_KEY must be set in production; `openssl rand -hex 32` makes one"
    if settings.allow_private_addresses:
        yield "HOMING_ALLOW_PRIVATE_ADDRESSES lifts the address guard; remove it in production"
    if settings.is_public_url_plain:
        yield "HOMING_PUBLIC_URL must begin with https:// in production: webhooks carry tokens"
    if settings.flower_basic_auth is None:
        yield "HOMING_FLOWER_BASIC_AUTH must be set in production, as user:password"


def _warnings(settings: Settings) -> Iterator[str]:
    if settings.is_production and settings.database_url.startswith("sqlite"):
        yield (
            "HOMING_DATABASE_URL is a SQLite file: good for one machine with a local disk and backups; "
            "more than one machine needs postgresql+psycopg://…"
        )
