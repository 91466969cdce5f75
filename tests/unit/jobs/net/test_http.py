"""The one HTTP client: what it promises about time, size, and whether a request ever left."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from jobs.core.errors import Transient
from jobs.net.http import Answer, Bounds, HttpClient, NoAnswer, NotSent, within
from tests.fakes.raw_server import ok, raw_server, read_request, says

QUICK = Bounds(connect_s=0.3, read_s=0.3, total_s=0.6, max_bytes=1000)


def get(url: str, *, bounds: Bounds = QUICK, fresh: bool = False) -> Answer:
    client = HttpClient(bounds)
    try:
        return client.request("GET", url, fresh=fresh)
    finally:
        client.close()


def drips(*, head: bytes, byte: bytes, over: threading.Event) -> Callable[[socket.socket], None]:
    """Sends a head, then a byte every 50 ms: always soon enough for a time-out that counts each read."""

    def script(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(head)
        while not over.wait(0.05):
            connection.sendall(byte)

    return script


def refused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize("status", [200, 201, 204, 301, 404, 429, 500])
def test_any_status_is_an_answer(status: int) -> None:
    with raw_server(says(ok(b"{}", status=b"%d X" % status, headers=b"X-Thing: 1\r\n"))) as server:
        answer = get(server.url)

    assert (answer.status, answer.headers["x-thing"]) == (status, "1")


def test_a_redirect_is_not_followed() -> None:
    moved = ok(b"", status=b"302 Found", headers=b"Location: /elsewhere\r\n")
    with raw_server(says(moved), says(ok(b"followed"))) as server:
        assert get(server.url).status == 302


def test_the_environment_names_no_proxy_and_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with raw_server(says(ok(b"{}"))) as server:
        assert get(server.url).body == b"{}"


def test_a_cookie_is_not_kept_for_the_next_request() -> None:
    with raw_server(lambda _connection: None) as server:
        answers = server.reads_then(lambda c: c.sendall(ok(b"", headers=b"Set-Cookie: a=b\r\nConnection: close\r\n")))
        server._scripts = (answers,)
        client = HttpClient(QUICK)

        client.request("GET", server.url)
        client.request("GET", server.url)

    assert b"cookie" not in server.requests[1].lower()


def test_a_refused_connection_was_never_sent() -> None:
    with pytest.raises(NotSent):
        get(f"http://127.0.0.1:{refused_port()}")


def test_a_name_without_address_was_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_args: object, **_kwargs: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)

    with pytest.raises(NotSent):
        get("http://provider.invalid")


def test_a_resolver_that_never_answers_was_never_sent_and_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kwargs: [over.wait(10)][:0])
    began = time.monotonic()

    with pytest.raises(NotSent):
        get("http://provider.invalid")

    assert time.monotonic() - began < 2
    over.set()


@pytest.fixture
def crowded() -> Iterator[str]:
    """The address of a port where nobody accepts."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    crowd = [socket.socket() for _ in range(4)]
    for one in crowd:
        one.setblocking(False)
        one.connect_ex(listener.getsockname())
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    for one in (*crowd, listener):
        one.close()


def test_a_connection_nobody_accepts_was_never_sent_and_ends_in_time(crowded: str) -> None:
    began = time.monotonic()

    with pytest.raises(NotSent):
        get(crowded)

    assert time.monotonic() - began < 2


def test_a_connection_that_was_given_too_little_time_says_nothing_of_the_other_side(crowded: str) -> None:
    with within(0.1), pytest.raises(Transient, match="no time left") as refused:
        get(crowded)

    assert not isinstance(refused.value, NotSent)


def test_a_failed_handshake_was_never_sent() -> None:
    with raw_server(says(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as server, pytest.raises(NotSent):
        get(server.url.replace("http:", "https:"))


def test_a_handshake_that_hangs_was_never_sent() -> None:
    over = threading.Event()
    with raw_server(lambda _connection: over.wait(5) and None) as server, pytest.raises(NotSent):
        get(server.url.replace("http:", "https:"))
    over.set()


def test_silence_after_the_request_may_have_arrived() -> None:
    over = threading.Event()

    def reads_and_is_silent(connection: socket.socket) -> None:
        read_request(connection)
        over.wait(5)

    with raw_server(reads_and_is_silent) as server, pytest.raises(NoAnswer):
        get(server.url)
    over.set()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="closed without a word"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", id="cut in the body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", id="cut in a chunk"),
        pytest.param(b"hello\r\n\r\n", id="not HTTP"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope", id="bad gzip"),
    ],
)
def test_an_answer_cut_short_may_have_arrived(answer: bytes) -> None:
    with raw_server(says(answer)) as server, pytest.raises(NoAnswer):
        get(server.url)


@pytest.mark.parametrize(
    ("head", "byte"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", b"x", id="body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"y", id="headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", id="chunks"),
    ],
)
def test_a_slow_drip_is_cut_off_by_the_total(head: bytes, byte: bytes) -> None:
    """F49: a time-out per read never ends while a byte comes now and then."""
    over = threading.Event()
    began = time.monotonic()

    with raw_server(drips(head=head, byte=byte, over=over)) as server, pytest.raises(NoAnswer):
        get(server.url)

    over.set()
    assert time.monotonic() - began < 1.5


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ok(b"x" * 1001), id="plain"),
        pytest.param(
            ok(gzip.compress(b"\0" * 1_000_000), headers=b"Content-Encoding: gzip\r\n"), id="small on the wire only"
        ),
    ],
)
def test_an_answer_beyond_the_cap_is_refused(answer: bytes) -> None:
    with raw_server(says(answer)) as server, pytest.raises(NoAnswer, match="larger than 1000 bytes"):
        get(server.url)


def test_an_answer_at_the_cap_is_taken() -> None:
    with raw_server(says(ok(b"x" * 1000))) as server:
        assert len(get(server.url).body) == 1000


def test_a_request_is_sent_once_even_if_its_answer_is_lost() -> None:
    with raw_server(lambda _connection: None) as server:
        server._scripts = (server.reads_then(lambda _connection: None),)

        with pytest.raises(NoAnswer):
            HttpClient(QUICK).request("POST", server.url, body=b"{}")

    assert len(server.requests) == 1


def test_a_fresh_request_never_rides_on_a_kept_connection() -> None:
    """A kept connection that the other side has just closed would look like a lost answer."""
    keeps_open = threading.Event()

    def answers_then_keeps(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(ok(b"kept"))
        keeps_open.wait(0.2)

    with raw_server(answers_then_keeps, says(ok(b"fresh"))) as server:
        client = HttpClient(Bounds(connect_s=1, read_s=1, total_s=2))
        assert client.request("GET", server.url).body == b"kept"

        assert client.request("POST", server.url, body=b"{}", fresh=True).body == b"fresh"
        client.close()


def test_body_headers_and_query_arrive_as_given() -> None:
    with raw_server(lambda _connection: None) as server:
        server._scripts = (server.reads_then(lambda connection: connection.sendall(ok(b"{}"))),)
        client = HttpClient(QUICK)

        client.request("POST", f"{server.url}/jobs", params={"k": "a b&c"}, headers={"X-A": "1"}, body=b'{"a":1}')

    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /jobs?k=a+b%26c HTTP/1.1")
    assert b"X-A: 1" in head
    assert b"User-Agent: homing" in head
    assert body == b'{"a":1}'


def test_certificates_are_checked() -> None:
    """There is no switch that turns the check off; a handshake that fails means that nothing was sent."""
    assert ssl.create_default_context().verify_mode is ssl.CERT_REQUIRED
    client = HttpClient(QUICK)
    assert client._session.verify is True


def test_several_requests_end_together_where_they_must() -> None:
    """Each has time of its own; a lease has only so much for all."""
    over = threading.Event()
    dripping = drips(head=b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", byte=b".", over=over)
    patient = Bounds(connect_s=5, read_s=5, total_s=30)
    begun = time.monotonic()
    with raw_server(says(ok(b"{}")), dripping) as server:
        with within(0.4):
            assert get(server.url, bounds=patient).status == 200
            with pytest.raises(NoAnswer):
                get(server.url, bounds=patient)
            with pytest.raises(Transient, match="no time left"):
                get(server.url, bounds=patient)
        waited_s = time.monotonic() - begun
        over.set()

    assert 0.4 <= waited_s < 2.0


def test_after_what_must_end_together_requests_have_their_own_time_again() -> None:
    with raw_server(says(ok(b"{}"))) as server:
        with within(0.0), pytest.raises(Transient, match="no time left"):
            get(server.url)

        assert get(server.url).status == 200
