"""HMAC-SHA256 over the body alone: `X-Signature: sha256=<hex>`, by default.

Header, prefix and encoding vary by sender. There is no timestamp, so a recording stays valid for ever: what
keeps a repeat harmless is the one-way state change, not this check. The secret is used as its text.

Source: GitHub, "Validating webhook deliveries" (`X-Hub-Signature-256`); Shopify, "Verify webhooks" (base64,
no prefix); Black Forest Labs (`X-BFL-Signature`).
"""

from __future__ import annotations

from jobs.core.signatures.matching import as_written, find_secret, hmac_sha256, without_prefix, write_digest
from jobs.core.signatures.scheme import Incoming, Outgoing, Scheme, SchemeOptions, Verified
from jobs.core.signatures.secrets import read_text_secret

_HEADER = "X-Signature"
_PREFIX = "sha256="


def _verify(request: Incoming) -> Verified:
    options = request.options
    sent = without_prefix(request.header(_header_name(options)), _prefix(options))
    index = find_secret(
        request.secrets,
        candidates=[as_written(sent, options.encoding)],
        expected=lambda secret: write_digest(hmac_sha256(secret, request.body), options.encoding),
    )
    return Verified(index, None, None)


def _sign(message: Outgoing) -> dict[str, str]:
    options = message.options
    signature = write_digest(hmac_sha256(message.secret, message.body), options.encoding).decode()
    return {_header_name(options): _prefix(options) + signature}


def _header_name(options: SchemeOptions) -> str:
    return options.header or _HEADER


def _prefix(options: SchemeOptions) -> str:
    return _PREFIX if options.prefix is None else options.prefix


HMAC_BODY = Scheme(
    "hmac-body",
    parse_secret=read_text_secret,
    verify=_verify,
    sign=_sign,
    reads=frozenset({"header", "prefix", "encoding", "delivery_id_header"}),
)
