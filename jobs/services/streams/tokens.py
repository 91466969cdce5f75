"""Tokens that open one job's stream for some minutes: a browser's ``EventSource`` can send no header.

A token travels in a URL, which lands in logs and histories. So it opens nothing else, soon expires, and is worth
nothing once the key it was asked for with is revoked. The server keeps no list of them:
``<expiry, Unix seconds>.<key id>.<HMAC-SHA256 over both and the job's id>``.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from jobs.core.errors import Unauthorized
from jobs.services.keys import Principal, Role
from jobs.storage.api_keys import find_live_key_by_id
from jobs.storage.database import Database

LIFE = timedelta(minutes=15)

_TEXT = re.compile(r"([0-9]{1,11})\.(key_[0-9a-z]{26})\.([A-Za-z0-9_-]{43})")
#: What these keys sign elsewhere can be no token.
_PURPOSE = b"homing stream token\0"


@dataclass(frozen=True, slots=True)
class StreamToken:
    """A token, and when it stops opening streams; an open one goes on."""

    token: str
    expires_at: datetime


def make_token(keys: Sequence[str], asking: Principal, *, job_id: str, now: datetime) -> StreamToken:
    """A token for one job.

    Args:
        keys: Secrets to sign with; the first one does.
        asking: Whose key it stands for.
        job_id: The job, which is this tenant's.
        now: The present instant.
    """
    expires_s = int((now + LIFE).timestamp())
    signature = _sign(keys[0], job_id, asking.key_id, expires_s)
    return StreamToken(f"{expires_s}.{asking.key_id}.{signature}", datetime.fromtimestamp(expires_s, UTC))


def read_token(database: Database, keys: Sequence[str], token: str, *, job_id: str, now: datetime) -> Principal:
    """Finds out whom a token stands for.

    Raises:
        Unauthorized: It is not one of ours for this job, has expired, or its key was revoked.
        Unavailable: The database cannot be asked.
    """
    match = _TEXT.fullmatch(token)
    if match is None or not _is_signed(keys, match, job_id):
        raise Unauthorized("this is no stream token of this job; POST /v1/jobs/{id}/stream-token makes one")
    if int(match[1]) <= now.timestamp():
        raise Unauthorized("this stream token has expired; POST /v1/jobs/{id}/stream-token makes another")
    with database.read() as tx:
        row = find_live_key_by_id(tx, match[2])
    if row is None:
        raise Unauthorized("the key this stream token was made with was revoked")
    return Principal(row["tenant"], Role(row["role"]), row["id"])


def _is_signed(keys: Sequence[str], match: re.Match[str], job_id: str) -> bool:
    wanted = (_sign(key, job_id, match[2], int(match[1])) for key in keys)
    return any(hmac.compare_digest(match[3], signature) for signature in wanted)


def _sign(key: str, job_id: str, key_id: str, expires_s: int) -> str:
    secret = hashlib.sha256(_PURPOSE + key.encode()).digest()
    digest = hmac.digest(secret, f"{job_id}\n{key_id}\n{expires_s}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
