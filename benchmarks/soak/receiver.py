"""A customer's endpoint: takes deliveries, refuses some, counts all."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: Of the deliveries, answered 500 at the first try.
REFUSED_SHARE = 0.03


class Receiver:
    """What came."""

    def __init__(self, *, seed: int) -> None:
        self.url = ""
        self.answers: Counter[int] = Counter()
        self._rng = random.Random(seed)
        self._lock = threading.Lock()

    def take(self) -> int:
        """The status for one more delivery."""
        with self._lock:
            status = 500 if self._rng.random() < REFUSED_SHARE else 204
            self.answers[status] += 1
        return status


@contextmanager
def receiving(*, seed: int) -> Iterator[Receiver]:
    """A receiver that listens for as long as the block lasts."""
    receiver = Receiver(seed=seed)

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(receiver.take())
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}/hooks"
        thread = threading.Thread(target=server.serve_forever, name="receiver", daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
