"""One try against receivers that misbehave, over real sockets."""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import replace

import pytest

from jobs.clock import SystemClock
from jobs.core.errors import JobsError
from jobs.net.guard import Guard
from tests.fakes.raw_server import Script, ok, raw_server, read_request, says
from webhooks.outgoing.attempt import BOUNDS, Answered, Sender

QUICK = replace(BOUNDS, connect_s=0.5, read_s=1.0, total_s=1.0)
LIFTED = Guard(lifted=True)


def post(url: str, guard: Guard = LIFTED) -> Answered:
    return Sender(guard, bounds=QUICK)(url, headers={"Content-Type": "application/json"}, body=b'{"id":"evt_1"}')


@pytest.fixture
def began() -> float:
    return SystemClock().monotonic()


def test_the_body_and_headers_arrive_byte_for_byte() -> None:
    seen: list[bytes] = []

    def takes(connection: socket.socket) -> None:
        seen.append(read_request(connection))
        connection.sendall(ok(b"{}"))

    with raw_server(takes) as receiver:
        answered = post(f"{receiver.url}/hooks?a=%7E")

    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hooks?a=%7E HTTP/1.1\r\n")
    assert body == b'{"id":"evt_1"}'
    assert (answered.status, answered.is_success) == (200, True)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (b"301 Moved", "redirect_not_followed"),
        (b"307 Temporary Redirect", "redirect_not_followed"),
        (b"404 Not Found", "status_404"),
        (b"500 Oops", "status_500"),
    ],
)
def test_what_is_no_2xx_is_a_failure_and_a_redirect_is_not_followed(status: bytes, error: str) -> None:
    with raw_server(says(ok(b"elsewhere"))) as elsewhere:
        headers = b"Location: %s/\r\n" % elsewhere.url.encode()
        with raw_server(says(ok(b"no", status=status, headers=headers))) as receiver:
            answered = post(receiver.url)

        assert (answered.status, answered.error) == (int(status[:3]), error)
        assert elsewhere.requests == []


def test_410_and_retry_after_are_told() -> None:
    with raw_server(says(ok(b"", status=b"410 Gone"))) as receiver:
        assert post(receiver.url).is_gone
    with raw_server(says(ok(b"", status=b"429 Slow", headers=b"Retry-After: 77\r\n"))) as receiver:
        answered = post(receiver.url)
    assert (answered.retry_after, answered.asks_for_a_pause) == ("77", True)


def drips(head: bytes, part: bytes) -> Script:
    def script(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(head)
        for _ in range(100):
            connection.sendall(part)
            time.sleep(0.05)

    return script


def stays_silent(connection: socket.socket) -> None:
    read_request(connection)
    time.sleep(2)


@pytest.mark.parametrize(
    "script", [stays_silent, drips(b"", b"H"), drips(b"HTTP/1.1 200 OK\r\n", b"X")], ids=["silent", "status", "headers"]
)
def test_a_receiver_that_hangs_or_drips_its_headers_costs_the_bound_and_is_a_failure(
    script: Script, began: float
) -> None:
    """F49: a time-out for each read would wait for ever."""
    with raw_server(script) as receiver:
        answered = post(receiver.url)

    assert answered.error == "no_answer"
    assert SystemClock().monotonic() - began < 3


def test_a_2xx_whose_body_drips_is_a_success_within_the_bound(began: float) -> None:
    """F49: the status line came in time, and it is what counts."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    with raw_server(drips(head, b"x")) as receiver:
        answered = post(receiver.url)

    assert (answered.status, answered.is_success) == (200, True)
    assert SystemClock().monotonic() - began < 3


def test_of_a_gigabyte_64_kib_are_read_and_a_thousand_bytes_kept() -> None:
    """F49."""
    sent = 0

    def floods(connection: socket.socket) -> None:
        nonlocal sent
        read_request(connection)
        connection.sendall(b"HTTP/1.1 500 Oops\r\nContent-Length: 1000000000\r\n\r\n")
        for _ in range(1_000):
            connection.sendall(b"x" * 1_000_000)
            sent += 1_000_000

    with raw_server(floods) as receiver:
        answered = post(receiver.url)

    assert answered.error == "status_500"
    assert len(answered.excerpt or "") <= 1001
    assert sent < 50_000_000  # what the sockets hold, not what there was to send


def test_the_address_is_judged_at_each_try_and_nothing_is_dialled() -> None:
    """F45, F46: whatever the name meant when it was registered."""
    with raw_server(says(ok(b""))) as receiver:
        answered = post(receiver.url, Guard())

        assert answered.error == "address_refused:loopback"
        assert receiver.requests == []


def test_a_name_is_resolved_once_and_the_checked_address_is_dialled() -> None:
    """F45: the second look-up, which would say 127.0.0.1, is never made."""
    asked = []

    def turns(host: str, _port: int, _within_s: float) -> list[str]:
        asked.append(host)
        return ["93.184.216.34"] if len(asked) == 1 else ["127.0.0.1"]

    guard = Guard(resolve=turns)
    assert guard.check("http://hooks.example/").addresses == ("93.184.216.34",)

    answered = post("http://hooks.example/", guard)

    assert answered.error == "address_refused:loopback"
    assert len(asked) == 2


def test_nobody_listening_is_a_failure_in_words() -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]

    answered = post(f"http://127.0.0.1:{port}/")

    assert answered.error == "not_sent"
    assert answered.excerpt


def test_an_error_of_ours_is_no_answer_of_theirs() -> None:
    """A fault in our own code must be seen, not recorded as the receiver's."""

    def breaks(_host: str, _port: int, _within_s: float) -> list[str]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        post("http://hooks.example/", Guard(resolve=breaks))
    assert not issubclass(ZeroDivisionError, JobsError)
