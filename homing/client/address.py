"""Which fleet a command talks to: `HOMING_URL` and `HOMING_API_KEY`, else the `run.json` of the data dir."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from homing.client.data_dir import data_dir_of
from jobs.config.urls import check_web_url
from jobs.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Address:
    """A fleet's API and the key for it."""

    url: str
    api_key: str = field(repr=False)


def find_address(
    environ: Mapping[str, str] = os.environ, *, url: str | None = None, api_key: str | None = None
) -> Address:
    """Find the fleet to talk to.

    Args:
        environ: the process's environment.
        url: wins over `HOMING_URL`.
        api_key: wins over `HOMING_API_KEY`.

    Raises:
        ConfigError: there is none to be found, or only half of what is needed; says what to set.
    """
    url, key = url or environ.get("HOMING_URL"), api_key or environ.get("HOMING_API_KEY")
    if url and key:
        return Address(_checked(url), key)
    folder = data_dir_of(environ)
    running = _read_run_file(folder)
    if running is not None and url in (None, "", running.url):
        return Address(running.url, key or running.api_key)
    if url:
        raise ConfigError("HOMING_URL is set and HOMING_API_KEY is not; `homing keys create` there makes a key")
    raise ConfigError(
        f"no fleet runs from {folder}. Start one with `homing up --embedded`, or say which to talk to: "
        "HOMING_DATA_DIR for one on this machine, HOMING_URL and HOMING_API_KEY for one elsewhere"
    )


def find_url(environ: Mapping[str, str] = os.environ) -> str | None:
    """Find where the fleet of `find_address` listens, for what needs no key; None: there is none."""
    if url := environ.get("HOMING_URL"):
        return _checked(url)
    running = _read_run_file(data_dir_of(environ))
    return None if running is None else running.url


def _checked(url: str) -> str:
    try:
        return check_web_url(url)
    except ValueError as fault:
        raise ConfigError(f"HOMING_URL: {fault}") from None


def _read_run_file(folder: Path) -> Address | None:
    from homing.up import run_file  # noqa: PLC0415 - not needed where the environment says it all

    running = run_file.read(folder)
    return None if running is None else Address(running.url, running.api_key)
