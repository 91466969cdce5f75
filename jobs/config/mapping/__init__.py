"""A provider described in TOML: the grammar of ``adapter = "declarative"``, read and checked."""

from __future__ import annotations

from jobs.config.mapping.model import ProviderMapping
from jobs.config.mapping.reading import SECTIONS, read_mapping

__all__ = ["SECTIONS", "ProviderMapping", "read_mapping"]
