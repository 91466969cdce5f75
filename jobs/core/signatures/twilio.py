"""Twilio: `X-Twilio-Signature`, base64 HMAC over the URL it called and the form's names and values.

SHA-1, or SHA-256 where `X-Twilio-Webhooks-Signature-Settings` says `algorithm=HMAC_SHA256`. A body that is no form is
bound by its SHA-256 in the URL's query (`bodySHA256`). There is no timestamp and no delivery id. Twilio itself does
not agree whether the URL carries its port, so both spellings count.

Names and values are joined without a separator, so `a=bc` and `ab=c` have one signature: that is Twilio's scheme.

Source: Twilio, "Webhooks security"; its Python package, `twilio.request_validator`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from urllib.parse import SplitResult, parse_qsl, urlsplit

from jobs.core.errors import Malformed, Mismatch, Missing
from jobs.core.signatures.matching import find_secret, hmac_sha1
from jobs.core.signatures.scheme import Incoming, Outgoing, Scheme, Secret, Verified
from jobs.core.signatures.secrets import read_text_secret

_HEADER = "X-Twilio-Signature"
_SETTINGS_HEADER = "X-Twilio-Webhooks-Signature-Settings"
_BODY_DIGEST = "bodySHA256"
_DEFAULT_PORTS = {"http": 80, "https": 443}
#: A form of Twilio's has some dozens of fields; more is an attempt to make us sort.
_MAX_FIELDS = 1000


def _verify(request: Incoming) -> Verified:
    sent = request.header(_HEADER)
    is_sha256 = _is_sha256(request)
    signed = _signed(request.url, request.body)
    for url in _spellings(request.url):
        message = url.encode("utf-8", "surrogatepass") + signed
        try:
            index = find_secret(
                request.secrets,
                candidates=[sent],
                expected=lambda secret, message=message: _signature(secret, message, is_sha256=is_sha256),  # type: ignore[misc]
            )
        except Mismatch:
            continue
        return Verified(index, None, None)
    raise Mismatch


def _sign(message: Outgoing) -> dict[str, str]:
    try:
        signed = message.url.encode() + _signed(message.url, message.body)
    except (Malformed, Mismatch) as error:
        raise ValueError("the body is no form, and the URL has not its bodySHA256") from error
    return {_HEADER: _signature(message.secret, signed, is_sha256=False).decode()}


def _is_sha256(request: Incoming) -> bool:
    try:
        settings = request.header(_SETTINGS_HEADER)
    except Missing:
        return False
    pairs = (part.partition(b"=") for part in settings.split(b","))
    named = [value.strip().upper() for name, _, value in pairs if name.strip() == b"algorithm" and value.strip()]
    if named and named[0] not in (b"HMAC_SHA1", b"HMAC_SHA256"):
        raise Malformed("an algorithm we do not know")
    return bool(named) and named[0] == b"HMAC_SHA256"


def _signed(url: str, body: bytes) -> bytes:
    """Return what is signed behind the URL: nothing where the URL binds the body, else the form.

    Raises:
        Mismatch: the URL binds another body.
        Malformed: URL or body cannot be read.
    """
    digests = [value for name, value in _pairs(_split(url).query) if name == _BODY_DIGEST]
    if not digests:
        return _form(body)
    wanted = hashlib.sha256(body).hexdigest().encode()
    if len(digests) != 1 or not hmac.compare_digest(wanted, digests[0].lower().encode("utf-8", "surrogatepass")):
        raise Mismatch
    return b""


def _form(body: bytes) -> bytes:
    try:
        text = body.decode("ascii")
    except UnicodeDecodeError:
        raise Malformed("the body is no form") from None
    return "".join(name + value for name, value in sorted(set(_pairs(text)))).encode()


def _pairs(text: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError:  # not UTF-8 behind the percent signs, or too many fields
        raise Malformed("the form cannot be read") from None


def _spellings(url: str) -> list[str]:
    """Return the URL as called, with its port and without."""
    parts = _split(url)
    try:
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        raise Malformed("the URL has no usable port") from None
    bare = parts.netloc if parts.port is None else parts.netloc.rpartition(":")[0]
    both = (bare, f"{bare}:{port}")
    return [url, *(spelled for netloc in both if (spelled := parts._replace(netloc=netloc).geturl()) != url)]


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise Malformed("the URL cannot be read") from None


def _signature(secret: Secret, message: bytes, *, is_sha256: bool) -> bytes:
    digest = hmac.digest(secret.key, message, "sha256") if is_sha256 else hmac_sha1(secret, message)
    return base64.b64encode(digest)


TWILIO = Scheme(
    "twilio",
    parse_secret=read_text_secret,
    verify=_verify,
    sign=_sign,
    reads=frozenset({"delivery_id_header"}),
)
