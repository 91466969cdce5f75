"""What proves a delivery to its receiver: fresh on each try, over the bytes that are sent.

Standard Webhooks, signed with every live secret; and for simple receivers ``X-Signature: sha256=<hex>``, HMAC-SHA256
of the body under the newest secret's text, ``whsec_`` included. During a rotation ``X-Signature-Previous`` says the
same under the secret before it: that header can hold one value only.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime

from jobs.core.signatures import sign

SIGNATURE = "webhook-signature"


def signature_headers(secrets: Sequence[str], *, body: bytes, event_id: str, at: datetime) -> dict[str, str]:
    """The headers of one try.

    Args:
        secrets: Live ones, newest first; at least one.
        body: The bytes that will be sent.
        event_id: The same on every try.
        at: Now.
    """
    signed = [sign("standard-webhooks", secret=secret, body=body, delivery_id=event_id, at=at) for secret in secrets]
    plain = [hmac.new(secret.encode(), body, hashlib.sha256).hexdigest() for secret in secrets]
    headers = {
        **signed[0],
        SIGNATURE: " ".join(each[SIGNATURE] for each in signed),
        "X-Signature": f"sha256={plain[0]}",
    }
    if len(plain) > 1:
        headers["X-Signature-Previous"] = f"sha256={plain[1]}"
    return headers
