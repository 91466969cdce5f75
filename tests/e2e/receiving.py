"""Receivers of deliveries over real sockets, that keep every byte they were sent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Taken:
    """One request, as it arrived; header names in lower case."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Endpoint:
    """Answers 200, or what a script says, and remembers.

    Attributes:
        answer: The status for a request.
        answered: Called when the client has had its answer and hung up.
    """

    url: str = ""
    answer: Callable[[Taken], int] = lambda _taken: 200
    answered: Callable[[Taken], None] = lambda _taken: None
    taken: list[Taken] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, taken: Taken) -> int:
        with self._lock:
            self.taken.append(taken)
        return self.answer(taken)

    def by_id(self) -> dict[str, list[Taken]]:
        """Every request, by the event it brought."""
        found: dict[str, list[Taken]] = {}
        with self._lock:
            for taken in self.taken:
                found.setdefault(taken.id, []).append(taken)
        return found


@contextmanager
def an_endpoint() -> Iterator[Endpoint]:
    """A receiver for the length of a block."""
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken = Taken({name.lower(): value for name, value in self.headers.items()}, body)
            status = endpoint.take(taken)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.flush()
            self.rfile.read()  # until the client has hung up
            endpoint.answered(taken)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
