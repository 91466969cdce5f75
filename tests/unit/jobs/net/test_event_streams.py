"""Streams of events from a server that says exactly the bytes a test wants."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from jobs.core.addresses import AddressRefused
from jobs.core.errors import Transient
from jobs.net.event_streams import Declined, EventStreams, StreamBounds
from jobs.net.guard import Guard
from jobs.net.guarded import Credential
from jobs.net.http import HttpClient, NoAnswer, NotSent
from jobs.net.sse import Message, MessageTooLarge
from tests.fakes.raw_server import RawServer, Script, ok, raw_server, read_request, says

QUICK = StreamBounds(connect_s=1, silence_s=0.3, life_s=2, max_bytes=20_000, max_message_chars=2_000)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
OPEN = HEAD + b"Connection: close\r\n\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SECRET = {"Authorization": "Bearer hunter2"}


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def hear(server: RawServer, *, bounds: StreamBounds = QUICK, **options: Any) -> Iterator[Message | None]:
    """What an account at this server is told."""
    streams = EventStreams(bounds=bounds)
    return streams.listen(f"{server.url}/s", credential=Credential(server.url, SECRET), **options)


def heard(*parts: bytes, **options: Any) -> list[Message]:
    with raw_server(says(*parts)) as server:
        return [message for message in hear(server, **options) if message is not None]


def texts(*parts: bytes) -> list[str]:
    return [message.data for message in heard(*parts)]


# What is read ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [OPEN, CHUNKED], ids=["until closed", "chunked"])
def test_characters_of_many_bytes_survive_any_cut_of_the_network(head: bytes) -> None:
    said = "data: über Köln 🕊\r\n\r\nid: 2\ndata: нет\n\n".encode()
    pieces = [said[index : index + 1] for index in range(len(said))]
    body = [chunk(piece) for piece in pieces] + [b"0\r\n\r\n"] if head is CHUNKED else pieces

    assert heard(head, *body) == [Message("message", "über Köln 🕊", None), Message("message", "нет", "2")]


def test_comments_retries_empty_data_and_unknown_fields_are_no_text() -> None:
    said = b": hi\n\nretry: 10\n\ndata:\n\nfoo: bar\ndata: a\n: in between\ndata: b\n\nevent: x\n\n"

    assert texts(OPEN, said) == ["", "a\nb"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_may_end_in_any_way(end: bytes) -> None:
    assert texts(OPEN, end.join([b"data: a", b"data: b", b"", b"data: c", b"", b""])) == ["a\nb", "c"]


def test_a_message_without_a_blank_line_behind_it_was_cut_off_and_is_none() -> None:
    assert texts(OPEN, b"data: whole\n\ndata: ha") == ["whole"]


def test_bytes_that_are_no_text_do_not_end_the_stream() -> None:
    assert texts(OPEN, b"data: \xff\xfe\n\ndata: on\n\n") == ["\ufffd\ufffd", "on"]


def test_a_message_is_told_before_the_next_one_is_written() -> None:
    goes_on = threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED + chunk(b"data: first\n\n"))
        assert goes_on.wait(5)
        connection.sendall(chunk(b"data: second\n\n") + b"0\r\n\r\n")

    with raw_server() as server:
        server._scripts = (server.reads_then(answer),)
        told = hear(server, bounds=StreamBounds())
        first = next(told)
        goes_on.set()
        second = next(told)

    assert [message.data for message in (first, second) if message] == ["first", "second"]


def test_a_sign_of_life_is_told_as_one() -> None:
    with raw_server(says(OPEN, b": beat\n\n")) as server:
        assert list(hear(server)) == [None]


def test_others_may_be_called_between_two_messages() -> None:
    """The bounds are the thread's; a request in between must not leave its own behind."""
    whole = (CHUNKED, chunk(b"data: a\n\n"), chunk(b"data: b\n\n"), b"0\r\n\r\n")
    with raw_server(says(*whole)) as server, raw_server(says(ok(b"{}"))) as other, closing(HttpClient()) as client:
        told = hear(server)
        first = next(told)
        client.request("GET", other.url)
        rest = list(told)

    assert [message.data for message in (first, *rest) if message] == ["a", "b"]


def test_who_stops_early_closes_the_connection() -> None:
    gone = threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.sendall(OPEN + b"data: a\n\n")
        connection.settimeout(5)
        assert connection.recv(1) == b""
        gone.set()

    with raw_server() as server:
        server._scripts = (server.reads_then(answer),)
        told = hear(server)
        next(told)
        told.close()  # type: ignore[attr-defined]  # an iterator that is a generator

        assert gone.wait(5)


# What is too much --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [b"data: " + b"x" * 5000, b"data: x\n" * 1500, b"data\n" * 3000, b"x" * 5000],
    ids=["a line", "many lines", "empty lines", "no field"],
)
def test_a_message_that_does_not_end_is_not_kept(said: bytes) -> None:
    with pytest.raises(MessageTooLarge):
        heard(OPEN, said)


def test_a_large_message_within_the_bound_is_whole() -> None:
    assert texts(OPEN, b"data: " + b"x" * 1900 + b"\n\n") == ["x" * 1900]


def test_a_stream_that_goes_on_for_ever_is_left() -> None:
    with pytest.raises(Transient, match="larger than 20000 bytes"):
        heard(OPEN, b": beat\n\n" * 3000)


def silent_after(*parts: bytes) -> Script:
    done = threading.Event()

    def script(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"".join(parts))
        done.wait(5)

    script.__dict__["done"] = done
    return script


@pytest.mark.parametrize("parts", [[], [OPEN], [OPEN, b"data: a\n\n"], [CHUNKED, b"5"]])
def test_silence_has_an_end(parts: list[bytes]) -> None:
    script = silent_after(*parts)
    with raw_server(script) as server, pytest.raises(NoAnswer):
        list(hear(server))
    script.__dict__["done"].set()


def test_a_stream_that_drips_has_an_end() -> None:
    def drip(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(OPEN)
        while True:
            connection.sendall(b":\n")
            threading.Event().wait(0.05)

    bounds = StreamBounds(connect_s=1, silence_s=5, life_s=0.4)
    with raw_server(drip) as server, pytest.raises(NoAnswer):
        list(hear(server, bounds=bounds))


# What is no stream -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [[CHUNKED, chunk(b"data: a\n\n")], [HEAD + b"Content-Length: 99\r\n\r\n", b"data: a\n\n"], [CHUNKED, b"zz\r\n"]],
    ids=["no last chunk", "less than announced", "no chunk"],
)
def test_a_stream_that_breaks_says_so(parts: list[bytes]) -> None:
    with pytest.raises(NoAnswer):
        heard(*parts)


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (b"404 Not Found", b"Content-Type: text/event-stream\r\n"),
        (b"302 Found", b"Location: http://127.0.0.1:9/\r\n"),
        (b"200 OK", b"Content-Type: text/html\r\n"),
        (b"200 OK", b""),
        (b"204 No Content", b""),
        (b"200 OK", b"Content-Type: text/event-stream\r\nContent-Encoding: gzip\r\n"),
    ],
)
def test_what_is_no_stream_is_declined_and_shown(status: bytes, headers: bytes) -> None:
    body = b"" if status.startswith(b"204") else b"sorry"
    with pytest.raises(Declined) as caught:
        heard(ok(body, status=status, headers=headers))

    assert caught.value.answer.status == int(status[:3])
    assert caught.value.answer.body == body


def test_nobody_there_is_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(NotSent):
        list(EventStreams(bounds=QUICK).listen(url, credential=Credential(url, SECRET)))


# Who is trusted ----------------------------------------------------------------------------------------------


def test_the_accounts_own_address_is_trusted_and_gets_its_credential() -> None:
    with raw_server() as server:
        server._scripts = (server.reads_then(lambda to: to.sendall(OPEN)),)
        list(hear(server, headers={"Last-Event-ID": "7"}))

    (request,) = server.requests
    assert b"Authorization: Bearer hunter2\r\n" in request
    assert b"Last-Event-ID: 7\r\n" in request
    assert b"Accept: text/event-stream\r\n" in request


def test_a_link_to_a_private_address_is_never_dialled() -> None:
    reached: list[bool] = []
    with raw_server(lambda _connection: reached.append(True)) as server, pytest.raises(AddressRefused):
        list(EventStreams(Guard()).listen(server.url, credential=Credential("https://api.example", SECRET)))

    assert not reached


def test_another_host_is_not_sent_the_credential() -> None:
    with raw_server() as server:
        server._scripts = (server.reads_then(lambda to: to.sendall(OPEN)),)
        streams = EventStreams(Guard(lifted=True))
        list(streams.listen(server.url, credential=Credential("https://api.example", SECRET)))

    assert b"hunter2" not in server.requests[0]


def test_a_redirect_is_not_followed_with_or_without_a_credential() -> None:
    hits: list[bool] = []
    with raw_server(lambda _connection: hits.append(True)) as target:
        moved = ok(b"", status=b"307 X", headers=f"Location: {target.url}\r\n".encode())
        with raw_server(says(moved)) as server, pytest.raises(Declined):
            list(hear(server))

    assert not hits


def test_a_submit_that_is_answered_by_a_stream_has_less_time() -> None:
    script = silent_after(OPEN)
    with raw_server(script) as server, pytest.raises(NoAnswer):
        list(hear(server, bounds=StreamBounds(), body=b"{}", within_s=0.3))
    script.__dict__["done"].set()
