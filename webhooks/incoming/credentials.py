"""Headers as they may be kept: without credentials, which are nobody's to read again. Pure.

A shared secret sent in a header is all there is to check of its request, so the quarantine keeps its digest in its
place, and a recheck holds that against the digests of today's secrets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jobs.core.errors import SignatureError
from jobs.core.signatures import SCHEMES, SchemeOptions, Secret
from jobs.core.signatures.matching import without_prefix

#: Credentials of ours or of a browser; no provider signs with them, and the inbox is shown to people.
_PRIVATE_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_REMOVED = "[removed]"


def shown_headers(headers: Mapping[str, str], *, credential_header: str | None) -> dict[str, str]:
    """Headers as they may be shown.

    Args:
        headers: By lower-case name.
        credential_header: One more that is private: it carries the sender's secret itself.
    """
    private = _PRIVATE_HEADERS | {credential_header}
    return {name: _REMOVED if name in private else value for name, value in headers.items()}


def kept_headers(scheme: str, headers: Mapping[str, str], options: SchemeOptions) -> dict[str, str]:
    """Headers of a request that may be checked again: a shared secret as its digest."""
    credential = SCHEMES[scheme].credential_header(options)
    kept = shown_headers(headers, credential_header=credential)
    if credential is not None and credential in headers:
        kept[credential] = _digest_of(headers[credential], prefix=options.prefix or "")
    return kept


def as_kept(scheme: str, secrets: Sequence[Secret], options: SchemeOptions) -> tuple[tuple[Secret, ...], SchemeOptions]:
    """Secrets and options in the form that fits headers kept by :func:`kept_headers`."""
    if SCHEMES[scheme].credential_header(options) is None:
        return tuple(secrets), options
    digests = tuple(Secret(hashlib.sha256(secret.key).hexdigest().encode()) for secret in secrets)
    return digests, replace(options, prefix="")


def _digest_of(value: str, *, prefix: str) -> str:
    try:
        secret = without_prefix(value.encode("latin-1", "replace").strip(b" \t"), prefix)
    except SignatureError:  # another prefix, or nothing: it will be refused again, as it should
        return ""
    return hashlib.sha256(secret).hexdigest()
