"""Authentic requests, made before the clock starts: a load generator that signs measures itself."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROVIDER = "renders"
PATH = f"/webhooks/{PROVIDER}"
_KEY = b"a-benchmark-signs-with-this-key!"
SECRET = "whsec_" + base64.b64encode(_KEY).decode()


@dataclass(frozen=True, slots=True)
class Signed:
    """One request: delivery id, timestamp, signature and body; neither holds a tab or a newline."""

    delivery_id: str
    stamp: str
    signature: str
    body: str

    @property
    def headers(self) -> dict[str, str]:
        """As the receiver wants them, in the order of ``generator``."""
        return {
            "content-type": "application/json",
            "webhook-id": self.delivery_id,
            "webhook-timestamp": self.stamp,
            "webhook-signature": self.signature,
        }


def body_of(run: str, delivery_id: str) -> str:
    """What a provider says of a run that came to its end; some 300 bytes."""
    output = f'{{"url":"https://files.example/{run}.mp4","seconds":12.5,"width":1920,"height":1080,"codec":"h264"}}'
    return (
        f'{{"id":"{delivery_id}","job":"{run}","status":"succeeded","output":{output},"cost":0.042,'
        f'"created":"2026-01-01T00:00:00Z","model":"video-1","trace":"{run[::-1]:->32}"}}'
    )


def sign(run: str, delivery_id: str, *, stamp: str) -> Signed:
    """Signs by Standard Webhooks."""
    body = body_of(run, delivery_id)
    digest = hmac.new(_KEY, f"{delivery_id}.{stamp}.{body}".encode(), hashlib.sha256).digest()
    return Signed(delivery_id, stamp, "v1," + base64.b64encode(digest).decode(), body)


def write_requests(path: Path, runs: Iterable[str]) -> Path:
    """One request per line, tab-separated; each with a delivery id of its own."""
    stamp = str(int(time.time()))
    with path.open("w", encoding="ascii") as file:
        for run in runs:
            signed = sign(run, f"msg-{run}", stamp=stamp)
            file.write(f"{signed.delivery_id}\t{signed.stamp}\t{signed.signature}\t{signed.body}\n")
    return path


def verify(delivery_id: str, stamp: str, signature: str, *, body: bytes) -> bool:
    """Whether a signature is ours; for the yardsticks, the product has its own."""
    digest = hmac.new(_KEY, f"{delivery_id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return hmac.compare_digest("v1," + base64.b64encode(digest).decode(), signature)
