"""HMAC-SHA256 over the body alone: `X-Signature: sha256=<hex>`, by default.

Header, prefix and encoding vary by sender. There is no timestamp, so a recording stays valid for ever: what
keeps a repeat harmless is the one-way state change, not this check. The secret is used as its text.

Source: GitHub, "Validating webhook deliveries" (`X-Hub-Signature-256`); Shopify, "Verify webhooks" (base64,
no prefix); Black Forest Labs (`X-BFL-Signature`).
"""

from __future__ import annotations

import base64

from jobs.core.errors import Malformed, Missing
from jobs.core.signatures.matching import find_secret, hmac_sha256
from jobs.core.signatures.scheme import (
    Encoding,
    Incoming,
    Outgoing,
    Scheme,
    SchemeOptions,
    Secret,
    Verified,
    usable_delivery_id,
)
from jobs.core.signatures.secrets import read_text_secret

_HEADER = "X-Signature"


def _verify(request: Incoming) -> Verified:
    options = request.options
    sent = _without_prefix(request.header(_header_name(options)), options.prefix)
    candidate = sent.lower() if options.encoding == "hex" else sent
    index = find_secret(
        request.secrets,
        candidates=[candidate],
        expected=lambda secret: _signature(secret, request.body, encoding=options.encoding),
    )
    return Verified(index, _delivery_id(request), None)


def _sign(message: Outgoing) -> dict[str, str]:
    options = message.options
    signature = _signature(message.secret, message.body, encoding=options.encoding).decode()
    headers = {_header_name(options): options.prefix + signature}
    if options.delivery_id_header:
        headers[options.delivery_id_header] = message.delivery_id
    return headers


def _without_prefix(header: bytes, prefix: str) -> bytes:
    """Return what follows the prefix, in whatever case it was written and with or without a blank after it.

    Raises:
        Malformed: another prefix, or nothing after it.
    """
    wanted = prefix.encode()
    digest = header[len(wanted) :].strip(b" \t")
    if header[: len(wanted)].lower() != wanted.lower() or not digest:
        raise Malformed("the header does not hold one digest of the expected kind")
    return digest


def _delivery_id(request: Incoming) -> str | None:
    name = request.options.delivery_id_header
    if name is None:
        return None
    try:
        return usable_delivery_id(request.header(name))
    except Missing:  # the header is not signed: its absence proves nothing
        return None


def _signature(secret: Secret, body: bytes, *, encoding: Encoding) -> bytes:
    digest = hmac_sha256(secret, body)
    return digest.hex().encode() if encoding == "hex" else base64.b64encode(digest)


def _header_name(options: SchemeOptions) -> str:
    return options.header or _HEADER


HMAC_BODY = Scheme("hmac-body", parse_secret=read_text_secret, verify=_verify, sign=_sign)
