"""A server that says exactly the bytes a test wants, when it wants them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Script = Callable[[socket.socket], None]


class RawServer:
    """Answers connection number n by script number n; the last script serves all further ones."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = scripts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for number in range(1_000):
            try:
                connection, _peer = self._listener.accept()
            except OSError:
                return
            script = self._scripts[min(number, len(self._scripts) - 1)]
            with connection:
                try:
                    script(connection)
                except OSError:
                    pass  # the client has left, which is what some tests are about

    def reads_then(self, answer: Callable[[socket.socket], None]) -> Script:
        """A script that reads the whole request first."""

        def script(connection: socket.socket) -> None:
            self.requests.append(read_request(connection))
            answer(connection)

        return script

    def close(self) -> None:
        self._listener.close()


def read_request(connection: socket.socket) -> bytes:
    """A request with its body, as far as Content-Length says."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65536)
        if not part:
            return received
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    lines = (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    length = next((int(line.split(b":")[1]) for line in lines), 0)
    while len(body) < length:
        part = connection.recv(65536)
        if not part:
            break
        body += part
    return head + b"\r\n\r\n" + body


def says(*parts: bytes) -> Script:
    """A script that reads the request, sends the parts and closes."""

    def script(connection: socket.socket) -> None:
        read_request(connection)
        for part in parts:
            connection.sendall(part)

    return script


def ok(body: bytes, *, status: bytes = b"200 OK", headers: bytes = b"Content-Type: application/json\r\n") -> bytes:
    """A well-formed answer."""
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, headers, len(body), body)


@contextmanager
def raw_server(*scripts: Script) -> Iterator[RawServer]:
    """A server for the length of a block."""
    server = RawServer(*scripts)
    try:
        yield server
    finally:
        server.close()
