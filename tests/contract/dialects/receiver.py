"""A receiver of webhooks that answers as it is told, and remembers what came."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.fakes.raw_server import ok, raw_server, read_request
from tests.services.waiting import wait_until

PATIENCE_S = 10.0
T = TypeVar("T")


def read_until(read: Callable[[], T], is_it: Callable[[T], bool]) -> T:
    """Reads until what is read is what is waited for."""
    seen: list[T] = []

    def happened() -> bool:
        seen[:] = [read()]
        return is_it(seen[0])

    wait_until(happened, within_s=PATIENCE_S, what="the expected answer")
    return seen[0]


@dataclass
class Receiver:
    """Counts deliveries.

    Attributes:
        status: What each is answered with.
    """

    url: str = ""
    status: str = "200 OK"
    bodies: list[Any] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def wait_for(self, count: int) -> list[Any]:
        """The first bodies, once there are so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.bodies) >= count, timeout=PATIENCE_S), self.bodies
            return self.bodies[:count]

    @property
    def headers(self) -> list[dict[str, str]]:
        """The headers of each delivery, by lower-case name."""
        lines = [[line.partition(":") for line in head.split("\r\n")[1:]] for head in self.heads]
        return [{name.lower(): value.strip() for name, _, value in head} for head in lines]

    def take(self, connection: socket.socket) -> None:
        head, _, body = read_request(connection).partition(b"\r\n\r\n")
        with self._changed:
            self.raw.append(body)
            self.heads.append(head.decode("latin-1"))
            self.bodies.append(json.loads(body))
            self._changed.notify_all()
        connection.sendall(ok(b"", status=self.status.encode(), headers=b"Connection: close\r\n"))


@contextmanager
def receiving(status: str = "200 OK") -> Iterator[Receiver]:
    receiver = Receiver(status=status)
    with raw_server(receiver.take) as server:
        receiver.url = server.url
        yield receiver
