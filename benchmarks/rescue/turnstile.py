"""Stands between the fleet and its provider, and can hold one request of a kind: who sent it is then caught at work."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests

#: Where deliveries go: no provider's path.
HOOKS = "/hooks"
_HELD_S = 60

Matches = Callable[[str, str, bytes], bool]


@dataclass(slots=True)
class Held:
    """A request that does not get on.

    Attributes:
        matches: By method, path and body.
        port: Of its sender, once it has come.
    """

    matches: Matches
    port: int = 0
    arrived: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)


class Turnstile:
    """Forwards to the provider, takes deliveries, holds what it was told to hold."""

    def __init__(self, behind: str) -> None:
        self.url = ""
        self.delivered: deque[bytes] = deque(maxlen=1000)
        self._behind = behind
        self._held: Held | None = None
        self._lock = threading.Lock()

    @contextmanager
    def holding(self, matches: Matches) -> Iterator[Held]:
        """Holds the first request that matches, until the block ends; then it is cut off."""
        held = self._held = Held(matches)
        try:
            yield held
        finally:
            self._held = None
            held.let_go.set()

    def stops(self, method: str, path: str, body: bytes, *, port: int) -> bool:
        """Waits where the request is to be held; says whether it was."""
        with self._lock:
            held = self._held
            if held is None or held.arrived.is_set() or not held.matches(method, path, body):
                return False
            held.port = port
            held.arrived.set()
        held.let_go.wait(_HELD_S)
        return True

    def pass_on(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str, bytes]:
        """The provider's answer, with links that lead through here."""
        if path.startswith(HOOKS):
            self.delivered.append(body)
            return 204, "text/plain", b""
        with requests.Session() as session:
            session.trust_env = False
            answer = session.request(method, self._behind + path, data=body, headers=headers, timeout=30)
        content = answer.content
        if "json" in answer.headers.get("Content-Type", ""):
            content = content.replace(self._behind.encode(), self.url.encode())
        return answer.status_code, answer.headers.get("Content-Type", "text/plain"), content


@contextmanager
def turnstile(behind: str) -> Iterator[Turnstile]:
    """One that listens for as long as the block lasts."""
    gate = Turnstile(behind)

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if gate.stops(self.command, self.path, body, port=self.client_address[1]):
                self.close_connection = True
                return
            kept = {
                name: value for name, value in self.headers.items() if name.lower() not in ("host", "content-length")
            }
            status, kind, content = gate.pass_on(self.command, self.path, body, kept)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_arguments: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_arguments: object) -> None:
            return  # whoever was killed hangs up

    with Server(("127.0.0.1", 0), Door) as server:
        gate.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, name="turnstile", daemon=True).start()
        try:
            yield gate
        finally:
            server.shutdown()
