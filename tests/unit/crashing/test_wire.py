"""A wire is good until it is told otherwise, and good again afterwards."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from socketserver import BaseRequestHandler, ThreadingTCPServer

import pytest

from homing.up.ports import free_port
from tests.crashing.wire import Mode, Wire


class Echo(BaseRequestHandler):
    def handle(self) -> None:
        while piece := self.request.recv(100):
            self.request.sendall(piece)


class Server(ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A caller that was cut off is no news."""


@pytest.fixture
def wire() -> Iterator[Wire]:
    server = Server(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    made = Wire(listen=free_port(), target=server.server_address[1])
    yield made
    made.close()
    server.shutdown()
    thread.join()
    server.server_close()


def _ask(sock: socket.socket) -> bytes:
    """What comes back; nothing where the other side hung up, and a time-out where it is silent."""
    try:
        sock.sendall(b"ping")
        return sock.recv(100)
    except (ConnectionResetError, BrokenPipeError):
        return b""


def _call(wire: Wire, *, patience_s: float = 5.0) -> socket.socket:
    return socket.create_connection(("127.0.0.1", wire.port), timeout=patience_s)


def test_a_good_wire_carries_both_ways(wire: Wire) -> None:
    with _call(wire) as sock:
        assert _ask(sock) == b"ping"


def test_a_wire_that_refuses_hangs_up(wire: Wire) -> None:
    wire.set(Mode.REFUSING)

    with _call(wire) as sock:
        assert _ask(sock) == b""


def test_a_wire_that_swallows_says_nothing_and_never_delivers_it_later(wire: Wire) -> None:
    with _call(wire, patience_s=0.3) as open_before:
        assert _ask(open_before) == b"ping"
        wire.set(Mode.SWALLOWING)
        with pytest.raises(TimeoutError):
            _ask(open_before)

        wire.heal(cut=True)

        assert _ends(open_before)
    with _call(wire) as fresh:
        assert _ask(fresh) == b"ping"


def _ends(sock: socket.socket) -> bool:
    sock.settimeout(5)
    try:
        return sock.recv(100) == b""
    except ConnectionResetError:
        return True


def test_a_slow_wire_delivers(wire: Wire) -> None:
    wire.set(Mode.SLOW, delay_s=0.01)

    with _call(wire) as sock:
        assert _ask(sock) == b"ping"


def test_a_service_that_is_away_is_a_hang_up(wire: Wire) -> None:
    lost = Wire(listen=free_port(), target=free_port())

    with _call(lost) as sock:
        assert _ask(sock) == b""

    lost.close()
