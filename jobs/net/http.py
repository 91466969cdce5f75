"""The one HTTP client: what it calls is bounded in time and size, and it never tries again by itself.

Whoever asks decides about another try, and can, because an error says which of two things happened: the request
never left (:class:`NotSent`), or it left and no usable answer came (:class:`NoAnswer`).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy

import requests
from requests.structures import CaseInsensitiveDict
from urllib3.exceptions import HTTPError as Urllib3Error

from jobs.clock import SystemClock
from jobs.core.errors import Transient, UnknownOutcome
from jobs.net.exchange import BoundedAdapter, Exchange, begin

USER_AGENT = "homing"
_CHUNK_BYTES = 64 * 1024


class NotSent(Transient):
    """The request never left: no address, no connection, no handshake. It had no effect."""

    slug = "not-sent"


class NoAnswer(UnknownOutcome):
    """The request left, and no complete answer came back: it may have had its effect."""

    slug = "no-answer"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whatever its status.

    Attributes:
        headers: Names in any case.
        body: Decoded from its transfer, not yet read as anything.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status line says 2xx, which alone says little."""
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one request.

    Attributes:
        connect_s: For name, connection and handshake.
        read_s: Longest silence.
        total_s: For everything. Below the lease of a job's work, so that a request ends while we still own the job.
        max_bytes: Largest body, as read and as decoded.
    """

    connect_s: float = 3.0
    read_s: float = 10.0
    total_s: float = 12.0
    max_bytes: int = 8 * 1024 * 1024


_limit = threading.local()
# Which says nothing of whom we would have asked: no "not sent", of which a breaker concludes that nobody is there.
_NO_TIME = "there was no time left to ask"


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Ends all requests of this thread by then, however many there are: each alone has its own bounds beside.

    For what is asked under a lease: two requests that take all their time outlast it.
    """
    outer = getattr(_limit, "ends_at_s", math.inf)
    _limit.ends_at_s = min(outer, SystemClock().monotonic() + seconds)
    try:
        yield
    finally:
        _limit.ends_at_s = outer


def _left_s() -> float:
    ends_at_s: float = getattr(_limit, "ends_at_s", math.inf)
    return ends_at_s - SystemClock().monotonic()


class HttpClient:
    """Calls providers. One per process, created after any fork; threads may share it.

    No proxy, netrc or certificate bundle is taken from the environment, no redirect is followed and no cookie is
    kept: what is sent, and where, is what the caller said.
    """

    def __init__(self, bounds: Bounds | None = None, *, monotonic: Callable[[], float] | None = None) -> None:
        """Opens nothing yet.

        Args:
            bounds: Limits of each request.
            monotonic: A clock in seconds; sockets wait in real time, so tests leave it alone.
        """
        self._bounds = bounds or Bounds()
        self._monotonic = monotonic or SystemClock().monotonic
        self._session = _session()

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        fresh: bool = False,
    ) -> Answer:
        """Sends one request, once.

        Args:
            method: GET, POST …
            url: http or https.
            headers: Sent as they are.
            params: The query.
            body: Sent as it is; say its type in ``headers``.
            fresh: On a connection of its own. A kept connection may be closed by the other side just as we send,
                which looks like an answer lost: for a request that must not be repeated, that is too dear.

        Raises:
            NotSent: It never left.
            NoAnswer: It left, and no complete answer within the bounds came back.
            Transient: There was no time left for it (:func:`within`).
        """
        exchange = self._begin()
        session = _session() if fresh else self._session
        try:
            with session.request(
                method,
                url,
                headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **(headers or {})},
                params=params,
                data=body,
                timeout=(self._bounds.connect_s, self._bounds.read_s),
                allow_redirects=False,
                stream=True,
            ) as response:
                return Answer(response.status_code, CaseInsensitiveDict(response.headers), self._read(response))
        except (requests.RequestException, Urllib3Error, OSError) as error:
            raise _failure(error, sent=exchange.sent, is_cut_short=_left_s() <= 0) from error
        finally:
            if fresh:
                session.close()

    def close(self) -> None:
        """Closes kept connections."""
        self._session.close()

    def _begin(self) -> Exchange:
        bounds, now_s, left_s = self._bounds, self._monotonic(), _left_s()
        if left_s <= 0:
            raise Transient(_NO_TIME)
        exchange = Exchange(
            self._monotonic,
            ends_at_s=now_s + min(bounds.total_s, left_s),
            connect_s=bounds.connect_s,
            read_s=bounds.read_s,
        )
        begin(exchange)
        return exchange

    def _read(self, response: requests.Response) -> bytes:
        parts, size = [], 0
        for part in response.iter_content(_CHUNK_BYTES):
            size += len(part)
            if size > self._bounds.max_bytes:
                raise NoAnswer(f"the answer is larger than {self._bounds.max_bytes} bytes")
            parts.append(part)
        return b"".join(parts)


def _session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.mount("http://", BoundedAdapter(max_retries=0))
    session.mount("https://", BoundedAdapter(max_retries=0))
    return session


def _failure(error: Exception, *, sent: bool, is_cut_short: bool) -> Transient | NoAnswer:
    words = f"{type(error).__name__}: {error}"[:300]
    if sent:
        return NoAnswer(f"no answer came: {words}")
    return Transient(_NO_TIME) if is_cut_short else NotSent(f"nothing was sent: {words}")
