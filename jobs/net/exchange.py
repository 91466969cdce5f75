"""One request on the wire, bounded as a whole, and knowing whether it ever left.

The libraries underneath bound each read, not the sum of them: with a time-out of 1 s an answer that drips took 5 s
and more. They also report a time-out during the TLS handshake like one after the request was sent; but the first
means "not done" and the second "perhaps done", which is the difference between trying again and paying twice.
Both are settled here, where the socket is. Not thread-bound: each thread has its own exchange.
"""

from __future__ import annotations

import io
import ipaddress
import queue
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

# A socket time-out of 0 would mean "do not block", which reads as an error of another kind.
_SHORTEST_WAIT_S = 0.001


@dataclass(slots=True)
class Exchange:
    """The bounds of one request, and how far it got.

    Attributes:
        monotonic: A clock in seconds that only grows.
        ends_at_s: When it is over, whatever is still missing.
        connect_s: Longest time for name and connection, handshake included.
        read_s: Longest silence of the other side.
        sent: Some of the request has left: it may have had its effect.
    """

    monotonic: Callable[[], float]
    ends_at_s: float
    connect_s: float
    read_s: float
    sent: bool = False

    def wait_s(self, at_most_s: float) -> float:
        """How long the next wait may be.

        Raises:
            TimeoutError: The exchange is over.
        """
        left_s = self.ends_at_s - self.monotonic()
        if left_s <= 0:
            raise TimeoutError("the answer was not complete in time")
        return max(_SHORTEST_WAIT_S, min(left_s, at_most_s))


_current = threading.local()


def begin(exchange: Exchange) -> None:
    """Makes an exchange the thread's own; the connections below bound themselves by it."""
    _current.exchange = exchange


def _exchange() -> Exchange:
    exchange: Exchange = _current.exchange
    return exchange


class _BoundedReader(io.RawIOBase):
    """Reads a socket, each time no longer than the exchange still has."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        exchange = _exchange()
        self._sock.settimeout(exchange.wait_s(exchange.read_s))
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        try:
            self._raw.close()
        finally:
            super().close()


class _BoundedResponse(HTTPResponse):
    """Status line, headers and body, all under the one bound."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_BoundedReader(self.fp.detach(), sock))


def _dial(connection: HTTPConnection) -> socket.socket:
    """Connects to the first address that answers; all of them together within ``connect_s``.

    Raises:
        NameResolutionError: The name leads nowhere, or not in time.
        ConnectTimeoutError: Nobody answered in time.
        NewConnectionError: Everybody refused.
    """
    exchange = _exchange()
    ends_at_s = exchange.monotonic() + exchange.wait_s(exchange.connect_s)
    host, port = connection._dns_host, connection.port or connection.default_port  # noqa: SLF001 - urllib3's own hook
    refusal: OSError = OSError("the name has no address")
    for family, kind, protocol, _name, address in _resolve(connection, host, port, exchange.connect_s):
        left_s = ends_at_s - exchange.monotonic()
        if left_s <= 0:
            raise ConnectTimeoutError(connection, f"{host} did not answer in time")
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(left_s)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.connect(address)
        except OSError as error:
            sock.close()
            refusal = error
        else:
            return sock
    if isinstance(refusal, TimeoutError):
        raise ConnectTimeoutError(connection, f"{host} did not answer in time") from refusal
    raise NewConnectionError(connection, f"{host} cannot be reached: {refusal}") from refusal


def _resolve(connection: HTTPConnection, host: str, port: int, within_s: float) -> list[Any]:
    """Where to dial: the addresses that were checked before, else what the name says now."""
    pinned: tuple[str, ...] = getattr(connection, "pinned", ())
    if pinned:
        return [found for address in pinned for found in look_up(address, port, within_s)]
    try:
        return look_up(host, port, within_s)
    except TimeoutError as error:
        raise ConnectTimeoutError(connection, str(error)) from None
    except OSError as error:
        raise NameResolutionError(host, connection, socket.gaierror(str(error))) from error


def look_up(host: str, port: int, within_s: float) -> list[Any]:
    """Addresses of a name. The system's resolver has no time-out of ours, so a thread of its own waits for it.

    Raises:
        TimeoutError: No answer in time.
        OSError: The name has no address.
    """
    if _is_address(host):
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    answers: queue.SimpleQueue[list[Any] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except OSError as error:
            answers.put(error)
        except UnicodeError as error:  # a label that is empty or too long
            answers.put(OSError(str(error)))

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=within_s)
    except queue.Empty:
        raise TimeoutError(f"the name {host} was not resolved in time") from None
    if isinstance(answer, OSError):
        raise answer
    return answer


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class _Bounded:
    """What both kinds of connection do their own way: how they dial, what they note, how they read."""

    sock: socket.socket | None

    def _new_conn(self) -> socket.socket:
        return _dial(self)  # type: ignore[arg-type]  # mixed into HTTPConnection only

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()  # type: ignore[attr-defined]
        exchange = _exchange()
        assert self.sock is not None
        self.sock.settimeout(exchange.wait_s(exchange.read_s))  # one sendall is bounded as a whole
        exchange.sent = True
        super().send(data)  # type: ignore[misc]


class BoundedConnection(_Bounded, HTTPConnection):
    """A connection under the thread's exchange.

    Attributes:
        pinned: The only addresses it may dial; empty: what its host's name says.
    """

    response_class = _BoundedResponse
    pinned: tuple[str, ...] = ()


class BoundedTlsConnection(_Bounded, HTTPSConnection):
    """The same with TLS: name and certificate are judged by the host, whatever address was dialled."""

    response_class = _BoundedResponse
    pinned: tuple[str, ...] = ()


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = BoundedConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = BoundedTlsConnection


class BoundedAdapter(HTTPAdapter):
    """Requests' transport over the connections above."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Builds the pool; called by requests."""
        super().init_poolmanager(*args, **kwargs)
        manager: PoolManager = self.poolmanager
        manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}
