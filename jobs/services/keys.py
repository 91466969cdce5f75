"""API keys: who is asking, for which tenant, and what they may do.

A key is shown once, when it is made; the database keeps its digest. It is looked up on every request, so a
revoked key stops working at once.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jobs import ids
from jobs.core import instants
from jobs.core.errors import NotFound, Unauthorized
from jobs.services.faults import field_fault
from jobs.storage import api_keys
from jobs.storage.database import Database

DEFAULT_TENANT = "default"

_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Visible ASCII only: a header may carry any byte, and none may get further than this line.
_BEARER = re.compile(r"bearer +([\x21-\x7e]{1,200})", re.IGNORECASE)


class Role(StrEnum):
    """What a key may do; each role may also do what the roles before it may."""

    VIEWER = "viewer"  # read
    OPERATOR = "operator"  # submit, cancel, resolve, redrive
    ADMIN = "admin"  # pause and resume providers

    def includes(self, other: Role) -> bool:
        """Whether this role may do what the other may."""
        return _ORDER.index(self) >= _ORDER.index(other)


_ORDER = tuple(Role)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking."""

    tenant: str
    role: Role
    key_id: str


@dataclass(frozen=True, slots=True, repr=False)
class NewKey:
    """A key that was just made; the only moment its text is known. Hence no ``repr``."""

    id: str
    key: str
    tenant: str
    role: Role


def create_key(database: Database, *, tenant: str = DEFAULT_TENANT, role: str | Role = Role.OPERATOR) -> NewKey:
    """Makes a key.

    Raises:
        Unprocessable: The tenant's name is not 1-64 letters, digits, dots, dashes or underscores, or there is
            no such role.
    """
    if not _TENANT.fullmatch(tenant):
        raise field_fault("tenant", "must be 1 to 64 letters, digits, dots, dashes or underscores")
    known_role = _role(role)
    key = ids.new_api_key()
    with database.write() as tx:
        key_id = ids.new_id("key", at=tx.now)
        row = {"tenant": tenant, "role": known_role, "digest": digest_of(key), "created_at": tx.now}
        api_keys.insert_key(tx, {"id": key_id, **row})
    return NewKey(key_id, key, tenant, known_role)


def list_keys(database: Database) -> list[dict[str, Any]]:
    """Every key without its secret: id, tenant, role, created_at, revoked_at; oldest first."""
    with database.read() as tx:
        return [_document(row) for row in api_keys.list_keys(tx)]


def revoke_key(database: Database, key_id: str) -> None:
    """Revokes a key, at once.

    Raises:
        NotFound: There is no live key of that id.
    """
    with database.write() as tx:
        if not api_keys.mark_revoked(tx, key_id):
            raise NotFound(f"there is no live key {key_id!r}; `homing keys list` shows them")


def authenticate(database: Database, header: str | None) -> Principal:
    """Finds out who sends an ``Authorization`` header, whatever bytes it holds.

    Raises:
        Unauthorized: It is missing, malformed, unknown or revoked; the answer does not say which of the last two.
        Unavailable: The database cannot be asked.
    """
    match = _BEARER.fullmatch((header or "").strip(" "))
    if match is None:
        raise Unauthorized("send the header Authorization: Bearer <key>; `homing keys create` makes a key")
    with database.read() as tx:
        row = api_keys.find_live_key(tx, digest_of(match[1]))
    if row is None:
        raise Unauthorized("this API key is not known, or was revoked")
    return Principal(row["tenant"], Role(row["role"]), row["id"])


def digest_of(key: str) -> str:
    """The stored form of a key. Keys are random and long, so one plain round of SHA-256 is enough."""
    return hashlib.sha256(key.encode()).hexdigest()


def _role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        raise field_fault("role", f"must be one of {', '.join(Role)}") from None


def _document(row: Any) -> dict[str, Any]:
    return {
        "id": row["id"],
        "tenant": row["tenant"],
        "role": row["role"],
        "created_at": instants.to_text(row["created_at"]),
        "revoked_at": instants.to_text_or_none(row["revoked_at"]),
    }
