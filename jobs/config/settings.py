"""The settings of the environment, `HOMING_*`: read once, at the start of a process.

Whatever holds a password stays out of `repr`, and so out of logs and tracebacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from jobs.config.urls import check_database_url, check_redis_url, check_store_url, check_web_url
from jobs.core.durations import parse_size
from jobs.core.growth import GrowthRule, parse_growth

PREFIX = "HOMING_"
#: Read by the command line, which talks to a fleet from outside; no setting of a fleet.
CLIENT_VARIABLES = ("HOMING_URL", "HOMING_API_KEY")
#: What a shared secret must have at least, so that it cannot be guessed.
MIN_SECRET_CHARS = 32
_MIN_PASSWORD_CHARS = 8


def _absolute(path: Path) -> Path:
    """Children of a fleet may be started in another folder; they must find the same files."""
    return path.expanduser().absolute()


def _split_list(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _check_key(key: SecretStr) -> SecretStr:
    if len(key.get_secret_value()) < MIN_SECRET_CHARS:
        raise ValueError(f"a key has at least {MIN_SECRET_CHARS} characters; `openssl rand -hex 32` makes one")
    return key


def _check_basic_auth(pair: SecretStr) -> SecretStr:
    user, _, password = pair.get_secret_value().partition(":")
    if not user or len(password) < _MIN_PASSWORD_CHARS:
        raise ValueError(f"write user:password, the password with at least {_MIN_PASSWORD_CHARS} characters")
    return pair


def _default_database(read: Mapping[str, object]) -> str:
    return f"sqlite:///{read.get('data_dir', '')}/homing.db"


class Settings(BaseSettings):
    """One process's settings. Build it by `Settings.read`.

    Attributes:
        data_dir: database, embedded Redis, `run.json`; absolute.
        database_url: `sqlite:///…` or `postgresql+psycopg://…`.
        redis_url: of the bell: `redis://`, `rediss://`, `unix://` or `sentinel://`.
        public_url: what providers call back, without a slash at its end.
        secret_key: encrypts stored secrets; newest first.
        artifact_url: where result files are kept, any fsspec address; none: `artifacts` in the data folder.
        allow_private_addresses: lifts the address guard as a whole; development only.
        webhook_max_bytes: largest webhook body, as read and as decoded.
        require_idempotency_key: `POST /v1/jobs` without a key is refused.
        dead_letter_alarm: so many new dead letters within such a time are an alarm.
        heartbeat_url: pinged after each good sweep, by whatever watches from outside.
        flower_basic_auth: `user:password`; none: generated where the fleet is started.
        env: `production` refuses insecure defaults.
        config: the TOML file.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="ignore", frozen=True, hide_input_in_errors=True, env_ignore_empty=True
    )

    data_dir: Annotated[Path, AfterValidator(_absolute)] = Field(Path(".homing"), validate_default=True)
    database_url: Annotated[str, AfterValidator(check_database_url)] = Field(
        default_factory=_default_database, repr=False
    )
    redis_url: Annotated[str, AfterValidator(check_redis_url)] = Field("redis://127.0.0.1:6379/0", repr=False)
    public_url: Annotated[str, AfterValidator(check_web_url)] = "http://127.0.0.1:8000"
    secret_key: Annotated[
        tuple[Annotated[SecretStr, AfterValidator(_check_key)], ...], NoDecode, BeforeValidator(_split_list)
    ] = ()
    artifact_url: Annotated[str, AfterValidator(check_store_url)] | None = Field(None, repr=False)
    allow_private_addresses: bool = False
    webhook_max_bytes: Annotated[int, BeforeValidator(parse_size), Field(gt=0)] = 5 * 2**20
    require_idempotency_key: bool = False
    dead_letter_alarm: Annotated[GrowthRule, NoDecode, BeforeValidator(parse_growth)] = GrowthRule()
    heartbeat_url: Annotated[str, AfterValidator(check_web_url)] | None = Field(None, repr=False)
    flower_basic_auth: Annotated[SecretStr, AfterValidator(_check_basic_auth)] | None = None
    env: Literal["development", "production"] = "development"
    config: Path = Path("homing.toml")

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings out of an environment.

        Raises:
            pydantic.ValidationError: every fault found; its messages show no value.
        """
        return cls(**_Environment(cls, environ)())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the parent's signature
        init_settings: PydanticBaseSettingsSource,
        *_others: PydanticBaseSettingsSource,
        **_named: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take only what `read` hands over: the process's environment is an argument, not a global."""
        return (init_settings,)

    @property
    def is_production(self) -> bool:
        """Whether insecure defaults are refused."""
        return self.env == "production"

    @property
    def is_public_url_plain(self) -> bool:
        """Whether providers would call back over plain http."""
        return urlsplit(self.public_url).scheme == "http"


class _Environment(EnvSettingsSource):
    """The environment as pydantic-settings reads it, taken from a mapping that is handed over."""

    def __init__(self, settings_cls: type[BaseSettings], environ: Mapping[str, str]) -> None:
        """Keep the mapping until the parent's constructor asks for it."""
        self._environ = environ
        super().__init__(settings_cls)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): value for name, value in self._environ.items() if value}
