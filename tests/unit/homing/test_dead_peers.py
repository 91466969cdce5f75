from __future__ import annotations

import socket
import sys

import pytest

from homing.dead_peers import PATIENCE_MS, give_up_on_dead_peers


@pytest.mark.skipif(sys.platform != "linux", reason="the option is Linux's")
def test_every_connection_that_is_accepted_gives_up_on_a_dead_peer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert give_up_on_dead_peers() >= 1

        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == PATIENCE_MS


def test_a_system_without_the_option_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "TCP_USER_TIMEOUT", raising=False)

    assert give_up_on_dead_peers() == 0
