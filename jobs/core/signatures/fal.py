"""fal: Ed25519 over request id, user id, timestamp and the body's SHA-256, signature in hex, keys from a key set.

The request id is the run's, not the delivery's: fal sends it again with each delivery, so it is no delivery id. Its
public keys are published as a JSON Web Key Set; a configured key (base64url, as `x` in the set) takes their place.

Source: that a public key set is used is fal's documentation; URL and exact layout are third-party, from several
independent implementations that agree.
"""

from __future__ import annotations

import hashlib

from jobs.core.errors import Malformed
from jobs.core.signatures.ed25519 import find_signer, sign_message
from jobs.core.signatures.scheme import TIMED, USUAL_TOLERANCE, Incoming, KeyKind, Outgoing, Scheme, Verified
from jobs.core.signatures.secrets import read_private_key, read_public_key
from jobs.core.signatures.timestamps import format_timestamp

KEY_SET_URL = "https://rest.fal.ai/.well-known/jwks.json"
_PREFIX = "X-Fal-Webhook-"
#: What we sign as; a receiver treats it as opaque.
_USER_ID = "homing"


def _verify(request: Incoming) -> Verified:
    request_id, user_id, stamp, sent = (
        request.header(_PREFIX + name) for name in ("Request-Id", "User-Id", "Timestamp", "Signature")
    )
    judge = request.parse_stamp(stamp)
    message = _message(request_id, user_id, stamp, body=request.body)
    index = find_signer(request.secrets, signatures=[_decode(sent)], message=message)
    return Verified(index, None, judge(USUAL_TOLERANCE))


def _sign(message: Outgoing) -> dict[str, str]:
    if message.secret.kind is not KeyKind.PRIVATE:
        raise ValueError("the secret is no Ed25519 private key")
    stamp = format_timestamp(message.at, unit=message.options.timestamp_unit)
    signed = _message(message.delivery_id.encode(), _USER_ID.encode(), stamp.encode(), body=message.body)
    return {
        _PREFIX + "Request-Id": message.delivery_id,
        _PREFIX + "User-Id": _USER_ID,
        _PREFIX + "Timestamp": stamp,
        _PREFIX + "Signature": sign_message(message.secret, signed).hex(),
    }


def _message(*parts: bytes, body: bytes) -> bytes:
    return b"\n".join((*parts, hashlib.sha256(body).hexdigest().encode()))


def _decode(signature: bytes) -> bytes:
    try:
        return bytes.fromhex(signature.decode("ascii"))
    except ValueError:  # not hex, or not ASCII
        raise Malformed("the signature is not hex") from None


FAL = Scheme(
    "fal",
    parse_secret=read_public_key,
    parse_signing_secret=read_private_key,
    verify=_verify,
    sign=_sign,
    reads=TIMED | {"delivery_id_header"},
    key_set_url=KEY_SET_URL,
)
