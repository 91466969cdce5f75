"""Identifiers and secrets: the only module that mints either.

Ids are a prefix and a ULID (48 bits of milliseconds, 80 random bits, Crockford base 32, lower case), so they
sort by time as text. Source: https://github.com/ulid/spec
"""

from __future__ import annotations

import secrets
from datetime import datetime

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
# Two at a time: an id is made for every event that comes or goes.
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_TOKEN_BYTES = 24  # 192 bits: unguessable, and 32 characters in a URL


def new_id(prefix: str, *, at: datetime) -> str:
    """A new id such as ``job_01jd…`` that sorts by ``at``.

    Args:
        prefix: ``job``, ``evt``, ``dl`` … without the underscore.
        at: The instant of creation, aware.
    """
    milliseconds = int(at.timestamp() * 1000) & ((1 << 48) - 1)
    return f"{prefix}_{_base32((milliseconds << 80) | secrets.randbits(80))}"


def first_id(prefix: str, *, at: datetime) -> str:
    """The smallest id that :func:`new_id` can make at an instant: ids that sort before it are older."""
    milliseconds = int(at.timestamp() * 1000) & ((1 << 48) - 1)
    return f"{prefix}_{_base32(milliseconds << 80)}"


def new_token() -> str:
    """An unguessable, URL-safe token of 32 characters (callback URLs, idempotency keys, leases)."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def new_api_key() -> str:
    """A new API key; only its digest is ever stored."""
    return f"hk_{secrets.token_urlsafe(32)}"


def new_secret() -> bytes:
    """192 bits to sign webhooks with."""
    return secrets.token_bytes(_TOKEN_BYTES)


def _base32(number: int) -> str:
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])
