"""Calls to addresses somebody else gave: guarded, pinned, and byte for byte.

The guard's verdict and the connection are one thing: what was checked is what is dialled, with the URL's own host for
Host, SNI and the certificate. The request's target is sent as it was given, because a signed URL that a client
"normalises" (`%7E` to `~`, `/a/../b` to `/b`) no longer bears its signature. Nothing comes from the environment: no
proxy, no cookie, no credential. A thread reads one stream at a time, because the bounds are the thread's.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException

from requests.structures import CaseInsensitiveDict
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3.exceptions import HTTPError as Urllib3Error
from urllib3.exceptions import SSLError
from urllib3.response import HTTPResponse

from jobs.clock import SystemClock
from jobs.core.addresses import AddressRefused, Network
from jobs.net.exchange import BoundedConnection, BoundedTlsConnection, Exchange, begin
from jobs.net.guard import CheckedTarget, Guard
from jobs.net.http import USER_AGENT, Answer, Bounds, NoAnswer, NotSent

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CHUNK_BYTES = 64 * 1024


class TlsRefused(NotSent):
    """The other side's certificate is not good for its name, or the handshake failed."""

    slug = "tls-error"


@dataclass(frozen=True, slots=True)
class Credential:
    """Headers that belong to one origin, and are sent to no other, whatever redirects say."""

    origin: str
    headers: Mapping[str, str] = field(repr=False)

    def of(self, target: CheckedTarget) -> Mapping[str, str]:
        """What this target may see."""
        return self.headers if target.url.origin == self.origin else {}


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer whose body is still on the wire.

    Attributes:
        target: Who answered, after redirects.
    """

    target: CheckedTarget
    status: int
    headers: Mapping[str, str]
    _response: HTTPResponse
    _exchange: Exchange

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes: what is there is not held back until there is more.

        Between two pieces the thread may call others; the bounds of this stream stay its own.

        Raises:
            NoAnswer: It broke off, fell silent, or took too long.
        """
        try:
            while True:
                begin(self._exchange)
                piece = self._response.read1(_CHUNK_BYTES, decode_content=False)
                if not piece:
                    return
                yield piece
        except (Urllib3Error, HTTPException, OSError) as error:
            raise _failure(error, sent=True) from error

    def chunks(self) -> Iterator[bytes]:
        """The body as sent, not decoded, until its end.

        Raises:
            NoAnswer: It broke off, or took too long.
        """
        try:
            while chunk := self._response.read(_CHUNK_BYTES, decode_content=False):
                yield chunk
        except (Urllib3Error, HTTPException, OSError) as error:
            raise _failure(error, sent=True) from error


class GuardedClient:
    """Calls URLs from outside. One per process or thread; keeps no connection."""

    def __init__(
        self,
        guard: Guard,
        *,
        bounds: Bounds | None = None,
        monotonic: Callable[[], float] | None = None,
        ca_file: str | None = None,
    ) -> None:
        """Opens nothing yet.

        Args:
            guard: Judges each URL and each hop.
            bounds: Limits of each request, all hops together.
            monotonic: A clock in seconds.
            ca_file: Certificates to trust instead of the usual ones.
        """
        self.guard = guard
        self._bounds = bounds or Bounds()
        self._monotonic = monotonic or SystemClock().monotonic
        self._ca_file = ca_file or DEFAULT_CA_BUNDLE_PATH

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        allowed: Iterable[Network] = (),
        cut: bool = False,
    ) -> Answer:
        """Sends one request and reads the answer; a redirect is an answer.

        Args:
            method: GET, POST …
            url: Judged again now, whenever it was judged before.
            headers: Sent as they are.
            body: Sent as it is.
            allowed: Networks that may be used besides public addresses.
            cut: A body beyond the bound is cut there and is no failure.

        Raises:
            AddressRefused: The guard said no; nothing was dialled.
            NotSent: It never left (``TlsRefused`` among them).
            NoAnswer: It left, and no complete answer came back.
        """
        with self.open(method, url, headers=headers, body=body, allowed=allowed) as stream:
            return Answer(stream.status, stream.headers, self._read(stream, cut=cut))

    @contextmanager
    def open(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        allowed: Iterable[Network] = (),
        redirects: int = 0,
        credential: Credential | None = None,
    ) -> Iterator[Stream]:
        """Sends a request and gives its answer with the body still to be read.

        Args:
            method: GET, POST …
            url: Judged now.
            headers: Sent as they are, to each hop.
            body: Sent as it is, to the first hop only.
            allowed: Networks that may be used besides public addresses.
            redirects: How many hops may be followed, each judged as the first; 0: a redirect is the answer.
            credential: Sent to hops at its own origin only.

        Raises:
            AddressRefused: The guard said no to the URL or a hop, or there were too many hops.
            NotSent: It never left.
            NoAnswer: It left, and no answer came back.
        """
        networks = tuple(allowed)
        exchange = self._begin()
        target = self.guard.check(url, allowed=networks)
        for hop in range(redirects + 1):
            connection = self._connection(target)
            try:
                secret = credential.of(target) if credential else {}
                sent = {**(headers or {}), **secret}
                stream = self._send(exchange, connection, target, method=method, headers=sent, body=body)
                location = stream.headers.get("Location")
                if not (redirects and stream.status in _REDIRECTS and location):
                    yield stream
                    return
                if hop == redirects:
                    raise AddressRefused(f"more than {redirects} redirects", rule="too_many_redirects")
                target = self.guard.follow(target.url, location, allowed=networks)
            finally:
                connection.close()
            body = None

    def _begin(self) -> Exchange:
        bounds, now_s = self._bounds, self._monotonic()
        exchange = Exchange(self._monotonic, now_s + bounds.total_s, connect_s=bounds.connect_s, read_s=bounds.read_s)
        begin(exchange)
        return exchange

    def _connection(self, target: CheckedTarget) -> BoundedConnection | BoundedTlsConnection:
        url = target.url
        connection: BoundedConnection | BoundedTlsConnection
        if url.scheme == "https":
            connection = BoundedTlsConnection(
                url.host, url.port, cert_reqs=ssl.CERT_REQUIRED, ca_certs=self._ca_file, timeout=self._bounds.connect_s
            )
        else:
            connection = BoundedConnection(url.host, url.port, timeout=self._bounds.connect_s)
        connection.pinned = target.addresses
        return connection

    def _send(
        self,
        exchange: Exchange,
        connection: BoundedConnection | BoundedTlsConnection,
        target: CheckedTarget,
        *,
        method: str,
        headers: Mapping[str, str] | None,
        body: bytes | None,
    ) -> Stream:
        sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **(headers or {}), "Host": target.url.netloc}
        try:
            connection.request(
                method, target.url.target, body=body, headers=sent, preload_content=False, decode_content=False
            )
            response = connection.getresponse()
        except (Urllib3Error, HTTPException, OSError) as error:
            raise _failure(error, sent=exchange.sent) from error
        return Stream(target, response.status, CaseInsensitiveDict(response.headers), response, exchange)

    def _read(self, stream: Stream, *, cut: bool) -> bytes:
        most, parts, size = self._bounds.max_bytes, [], 0
        for chunk in stream.chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > most and cut:
                break
            if size > most:
                raise NoAnswer(f"the answer is larger than {most} bytes")
        return b"".join(parts)[:most]


def _failure(error: Exception, *, sent: bool) -> NotSent | NoAnswer:
    words = f"{type(error).__name__}: {error}"[:300]
    if sent:
        return NoAnswer(f"no answer came: {words}")
    if isinstance(error, ssl.SSLError | SSLError):
        return TlsRefused(f"the connection is not safe: {words}")
    return NotSent(f"nothing was sent: {words}")
