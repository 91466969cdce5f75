"""A provider that says what a test tells it to, request by request, and remembers what it was asked."""

from __future__ import annotations

import json
import socket
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from jobs.clock import FakeClock
from jobs.config.entries import read_providers
from jobs.config.providers import ADAPTERS, ProviderConfig
from jobs.config.secret_sources import SecretSources
from jobs.net.http import Bounds, HttpClient
from jobs.providers.port import Provider
from jobs.providers.registry import build_adapter
from tests.fakes.raw_server import ok, raw_server, read_request

CREDENTIAL = "id:s3cret"
WEBHOOK_SECRET = "webhook-secret-0001"
_RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"


@dataclass(frozen=True)
class Asked:
    """One request as it arrived; header names in lower case."""

    line: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Says:
    """An answer: JSON, or bytes as they are."""

    body: object = None
    status: str = "200 OK"
    headers: str = ""

    def encode(self) -> bytes:
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        extra = "".join(f"{line}\r\n" for line in ("Connection: close", self.headers) if line)
        return ok(body, status=self.status.encode(), headers=extra.encode())


class Lost:
    """The request is read, and the connection reset without an answer."""


Reply: TypeAlias = "Says | Lost"


@dataclass
class Vendor:
    """An adapter, and the provider it speaks to.

    Attributes:
        replies: What it will say; the last one serves all further requests.
    """

    config: ProviderConfig
    adapter: Provider
    replies: deque[Reply]
    asked: list[Asked] = field(default_factory=list)

    def will_say(self, *replies: Reply) -> None:
        self.replies.extend(replies)


@contextmanager
def vendor(adapter: str, clock: FakeClock, *replies: Reply, **entry: object) -> Iterator[Vendor]:
    """An adapter built from a TOML entry, as the product builds it, and a server for the length of a block."""
    waiting: deque[Reply] = deque(replies)
    asked: list[Asked] = []

    def serve(connection: socket.socket) -> None:
        asked.append(_parse(read_request(connection)))
        reply = waiting.popleft() if len(waiting) > 1 else waiting[0]
        if isinstance(reply, Lost):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        else:
            connection.sendall(reply.encode())

    client = HttpClient(Bounds(connect_s=2, read_s=2, total_s=4))
    with raw_server(serve) as server:
        config = an_entry(adapter, {"base_url": server.url, **entry})
        yield Vendor(config, build_adapter(config, client, clock), waiting, asked)
    client.close()


def an_entry(adapter: str, entry: Mapping[str, object]) -> ProviderConfig:
    """An entry of the configuration, read by the product's own reader."""
    table = {"adapter": adapter, "api_token": CREDENTIAL, **entry}
    if adapter != "runway" and table.get("webhook_scheme") != "none":
        table.setdefault("webhook_secrets", [WEBHOOK_SECRET])
    faults: list[str] = []
    entries = read_providers(
        {"p": table}, adapters=ADAPTERS, secrets=SecretSources({}, Path(), plain_allowed=True), faults=faults
    )
    assert not faults, faults
    return entries["p"]


def _parse(request: bytes) -> Asked:
    head, _, body = request.partition(b"\r\n\r\n")
    line, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (item.partition(":") for item in rest)}
    return Asked(line.removesuffix(" HTTP/1.1"), headers, body)
