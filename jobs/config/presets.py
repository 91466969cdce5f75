"""Providers described in advance: each ``jobs/providers/presets/<name>.toml`` is an adapter of that name.

A preset is an entry of ``homing.toml`` without its credentials; what an entry says itself wins, key by key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

_SUFFIX = ".toml"


@cache
def preset_names() -> tuple[str, ...]:
    """Return the names of the presets, sorted."""
    names = (path.name for path in files("jobs").joinpath("providers", "presets").iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def with_preset(adapter: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with its adapter's preset, if that has one, where the entry itself is silent."""
    return merged(read_preset(adapter), entry) if adapter in preset_names() else dict(entry)


def read_preset(name: str) -> dict[str, Any]:
    """Return a preset's keys."""
    return tomllib.loads(files("jobs").joinpath("providers", "presets", name + _SUFFIX).read_text(encoding="utf-8"))


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return two tables as one: tables inside are joined, anything else of `above` replaces what is below."""
    both = dict(below)
    for key, value in above.items():
        under = both.get(key)
        both[key] = merged(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return both
