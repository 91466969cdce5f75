"""Raw sockets against the server we ship with: bytes that HTTP clients refuse to send."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from homing.up.ports import free_port
from jobs.clock import FakeClock
from jobs.storage.database import Database
from tests.services.waiting import wait_until
from tests.vectors import B1, B2, B4
from webhooks.incoming.schema import inbox_events


@pytest.fixture
def port(sqlite_url: str) -> Iterator[int]:
    """granian over a database of this test's own."""
    chosen = free_port()
    granian = Path(sys.executable).with_name("granian")
    command = [granian, "--interface", "wsgi", "--factory", "--port", str(chosen), "--blocking-threads", "4"]
    process = subprocess.Popen(
        [*command, "tests.e2e.webhook_server:create"],
        env={**os.environ, "HOMING_DATABASE_URL": sqlite_url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: is_open(chosen), within_s=40, what="granian listening")
        yield chosen
    finally:
        process.terminate()
        process.wait(10)


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def send(port: int, path: bytes, headers: dict[bytes, bytes], body: bytes) -> tuple[int, bytes]:
    """One request as it stands; status and whole answer."""
    lines = [b"POST " + path + b" HTTP/1.1", b"Host: homing.test", b"Connection: close"]
    lines += [name + b": " + value for name, value in headers.items()]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return int(answer.split(b" ", 2)[1]), answer


def sized(body: bytes, **headers: bytes) -> dict[bytes, bytes]:
    named = {name.replace("_", "-").encode(): value for name, value in headers.items()}
    return {b"Content-Length": str(len(body)).encode(), **named}


def stored(sqlite_url: str) -> dict[str, bytes]:
    database = Database.connect(sqlite_url, clock=FakeClock())
    with database.read() as tx:
        rows = tx.rows(sa.select(inbox_events))
    database.close()
    return {row["provider"]: bytes(row["raw"]) for row in rows}


def test_bytes_beyond_ascii_in_a_signature_are_403_and_not_500(port: int, sqlite_url: str) -> None:
    """F02."""
    forged = [
        (b"/webhooks/plain", sized(B1.body, x_signature=b"sha256=\xe9\xff")),
        (b"/webhooks/stripy", sized(B1.body, stripe_signature=b"t=1767225600,v1=\xe9")),
        (
            b"/webhooks/renders",
            sized(B1.body, webhook_id=b"m", webhook_timestamp=b"1767225600", webhook_signature=b"v1,\xe9"),
        ),
        (b"/webhooks/plain", sized(B1.body, x_signature=b"sha256=" + b"a" * 8000)),
    ]

    answers = [send(port, path, headers, B1.body) for path, headers in forged]

    assert [status for status, _ in answers] == [403] * 4
    assert len({answer.partition(b"\r\n\r\n")[2] for _, answer in answers}) == 1
    assert stored(sqlite_url) == {}


def test_what_is_stored_is_what_was_on_the_wire(port: int, sqlite_url: str) -> None:
    """F01: in chunks, too."""
    form = sized(B4.body, x_signature=b"sha256=" + B4.h.encode(), content_type=b"application/x-www-form-urlencoded")
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (B2.body[:7], B2.body[7:])) + b"0\r\n\r\n"
    chunked = {b"Transfer-Encoding": b"chunked", b"Stripe-Signature": b"t=1767225600,v1=" + B2.s.encode()}

    assert send(port, b"/webhooks/plain/", form, B4.body)[0] == 200
    assert send(port, b"/webhooks/stripy/some-token/", chunked, chunks)[0] == 200
    assert stored(sqlite_url) == {"plain": B4.body, "stripy": B2.body}


def test_a_length_of_ten_terabytes_is_refused_before_it_is_sent(port: int) -> None:
    """F40 (c)."""
    headers = {b"Content-Length": b"10000000000000", b"X-Signature": b"sha256=" + B1.h.encode()}

    assert send(port, b"/webhooks/plain", headers, b"")[0] == 413


def test_an_endless_body_in_chunks_is_refused_at_the_limit(port: int) -> None:
    """F40 (b): more than 5 MiB, and no end."""
    headers = {b"Transfer-Encoding": b"chunked", b"X-Signature": b"sha256=" + B1.h.encode()}
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"

    assert send(port, b"/webhooks/plain", headers, chunk * 81)[0] == 413


@pytest.mark.parametrize("path", [b"/webhooks/nobody", b"/webhooks/plain/a/b", b"/webhooks/%00", b"/webhooks/..%2f"])
def test_paths_of_nobody_are_404(port: int, path: bytes) -> None:
    assert send(port, path, sized(B1.body), B1.body)[0] == 404
