"""The secrets of an endpoint or a tenant: a sealed list, newest first, whose older ones sign until their end."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from jobs.core import instants
from jobs.core.signatures import SCHEMES
from jobs.ids import new_secret
from webhooks.outgoing.sealing import Sealer

OVERLAP = timedelta(hours=24)
#: A receiver whose secret is rotated again and again within a day knows one of the last few.
MAX_LIVE = 4

#: ``[{"sealed": …, "until": RFC 3339 or null}, …]``
Stored: TypeAlias = Sequence[Mapping[str, Any]]

_SCHEME = SCHEMES["standard-webhooks"]


def new_signing_secret() -> str:
    """A fresh ``whsec_…``."""
    return "whsec_" + base64.b64encode(new_secret()).decode("ascii")


def check_secret(text: str) -> str:
    """A secret somebody chose, trimmed.

    Raises:
        ValueError: What is wrong with it, without quoting it.
    """
    _SCHEME.parse_secret(text)
    if not text.strip().startswith("whsec_"):
        raise ValueError("begins with whsec_, followed by base64")
    return text.strip()


def first(sealer: Sealer, secret: str) -> list[dict[str, Any]]:
    """What is stored for a first secret."""
    return [{"sealed": sealer.seal(secret), "until": None}]


def rotated(sealer: Sealer, stored: Stored, secret: str, *, at: datetime) -> list[dict[str, Any]]:
    """What is stored after a rotation: the new one, and those before it until their end."""
    ending = instants.to_text(at + OVERLAP)
    older = [{**entry, "until": entry["until"] or ending} for entry in stored if _is_live(entry, at)]
    return [*first(sealer, secret), *older][:MAX_LIVE]


def live(sealer: Sealer, stored: Stored, *, at: datetime) -> list[str]:
    """The secrets that sign now, newest first.

    Raises:
        Unopened: The newest was sealed with a key that is not here.
    """
    return [sealer.open(entry["sealed"]) for entry in stored if _is_live(entry, at)]


def _is_live(entry: Mapping[str, Any], at: datetime) -> bool:
    return entry["until"] is None or at < instants.from_text(entry["until"])
