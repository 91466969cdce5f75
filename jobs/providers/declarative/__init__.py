"""A provider without code of its own: what it is told and how it is understood stands in ``homing.toml``."""

from __future__ import annotations

from jobs.providers.declarative.provider import DeclarativeProvider

__all__ = ["DeclarativeProvider"]
