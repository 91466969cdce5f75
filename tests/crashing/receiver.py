"""An endpoint that counts what it is sent, and is not always well."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random

from homing.up.ports import free_port

_FAILS = 0.05


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A sender that was killed in the middle is no news."""


class Receiver:
    """Counts deliveries by event id; one in twenty is answered 500, after it was counted.

    Args:
        rng: Draws those, each at its first call.
        refuses: Whether it is ill, and answers 500 to everything.
    """

    def __init__(self, rng: Random, *, refuses: Callable[[], bool] = lambda: False) -> None:
        self._rng = rng
        self._refuses = refuses
        self._lock = threading.Lock()
        self._events: Counter[str] = Counter()
        self._server = _Server(("127.0.0.1", free_port()), self._handler())
        threading.Thread(target=self._server.serve_forever, name="receiver", daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hooks"

    def events(self) -> dict[str, int]:
        """How often each event came."""
        with self._lock:
            return dict(self._events)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _count(self, event_id: str) -> int:
        with self._lock:
            self._events[event_id] += 1
            if self._refuses():
                return 500
            return 500 if self._events[event_id] == 1 and self._rng.random() < _FAILS else 204

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        count = self._count

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(count(self.headers.get("webhook-id", "")))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing: the harness has its own log."""

        return Handler
