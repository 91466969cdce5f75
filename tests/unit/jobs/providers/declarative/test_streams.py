"""Streams as a description reads them, from a server that says exactly the bytes a test wants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobs.clock import FakeClock
from jobs.config.entries import read_providers
from jobs.config.providers import ADAPTERS
from jobs.config.secret_sources import SecretSources
from jobs.core.errors import Transient
from jobs.net.http import HttpClient
from jobs.providers.port import Gone, StreamsOutput
from jobs.providers.registry import build_adapter
from tests.fakes.raw_server import ok, raw_server, says

OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
BASE: dict[str, Any] = {
    "adapter": "declarative",
    "webhook_scheme": "none",
    "submit": {"call": "POST /runs", "id": "id"},
    "status": {"call": "GET /runs/${job.provider_job_id}", "state": "s", "states": {"succeeded": ["done"]}},
}


def read(stream: dict[str, Any] | None, url: str = "http://127.0.0.1:9") -> tuple[Any, list[str]]:
    """An entry with a section, and what is wrong with it."""
    faults: list[str] = []
    entry = {**BASE, "base_url": url} | ({} if stream is None else {"stream": stream})
    sources = SecretSources({}, Path(), plain_allowed=True)
    entries = read_providers({"p": entry}, adapters=ADAPTERS, secrets=sources, faults=faults)
    return entries.get("p"), faults


def told(stream: dict[str, Any], *said: bytes) -> Iterator[str]:
    """The pieces a described provider tells."""
    with raw_server(says(OPEN, *said)) as server, closing(HttpClient()) as client:
        config, faults = read({"call": "GET /runs/${job.provider_job_id}/text", **stream}, server.url)
        assert not faults, faults
        adapter: Any = build_adapter(config, client, FakeClock())
        assert isinstance(adapter, StreamsOutput)
        for delta in adapter.follow_output("r-1"):
            yield delta.text


def test_a_message_may_be_the_text_itself_and_a_word_the_end() -> None:
    assert list(told({"end": "[DONE]"}, b"data: one\n\ndata:  two\n\n: hi\n\ndata: [DONE]\n\n")) == ["one", " two"]


def test_the_text_may_stand_in_json_and_the_end_too() -> None:
    stream = {"text": "choices[0].delta", "ended_if": "done"}
    said = b'data: {"choices": [{"delta": "a"}]}\n\ndata: {"choices": []}\n\ndata: {"done": true}\n\n'

    assert list(told(stream, said)) == ["a"]


def test_a_place_goes_back_to_its_provider_in_utf_8() -> None:
    """An id may be any text, and a header's usual encoding has no pigeons."""
    said = b"id: \xe9\xb3\xa9-1\ndata: one\n\ndata: [DONE]\n\n"
    with raw_server() as server, closing(HttpClient()) as client:
        server._scripts = (server.reads_then(lambda to: to.sendall(OPEN + said)),)
        stream = {"call": "GET /runs/${job.provider_job_id}/text", "end": "[DONE]", "resume": True}
        adapter: Any = build_adapter(read(stream, server.url)[0], client, FakeClock())

        (piece,) = adapter.follow_output("r-1")
        list(adapter.follow_output("r-1", after=piece.place))

    assert piece.place == "鳩-1"
    assert "Last-Event-ID: 鳩-1".encode() in server.requests[-1]


def test_messages_of_other_names_bring_no_text() -> None:
    stream = {"event": "token", "end": ["end", "stopped"]}
    said = b"event: log\ndata: hm\n\nevent: token\ndata: a\n\ndata: b\n\nevent: stopped\ndata: {}\n\n"

    assert list(told(stream, said)) == ["a"]


def test_a_stream_without_its_end_broke() -> None:
    with pytest.raises(Transient):
        list(told({"end": "done"}, b"data: one\n\n"))


def test_a_message_that_is_no_json_where_one_is_read_is_no_answer() -> None:
    with pytest.raises(Transient):
        list(told({"text": "t", "end": "done"}, b"data: {oops\n\n"))


def test_what_the_status_section_calls_gone_is_gone() -> None:
    with raw_server(says(ok(b"{}", status=b"410 Gone"))) as server, closing(HttpClient()) as client:
        config, _faults = read({"call": "GET /x", "end": "done"}, server.url)
        adapter: Any = build_adapter(config, client, FakeClock())
        with pytest.raises(Gone):
            list(adapter.follow_output("r-1"))


def test_without_the_section_nothing_is_listened_to() -> None:
    config, faults = read(None)
    with closing(HttpClient()) as client:
        adapter: Any = build_adapter(config, client, FakeClock())

        assert not faults
        assert not adapter.can_follow({"model": "llm-stream"})
        with pytest.raises(Gone):
            list(adapter.follow_output("r-1"))


@pytest.mark.parametrize(
    ("stream", "fault"),
    [
        ({"call": "GET /x"}, "providers.p.stream must hold end or ended_if"),
        ({"call": "POST /x", "end": "done"}, "providers.p.stream.call must be a GET"),
        ({"call": "GET /x", "end": []}, "providers.p.stream.end must be a word"),
        ({"call": "GET /x", "end": "done", "texts": "t"}, "providers.p.stream.texts is unknown; did you mean text"),
        ({"call": "GET /${input.model}", "end": "done"}, "input is not known in stream"),
        ({"end": "done"}, "providers.p.stream.call is missing"),
    ],
)
def test_a_mistake_is_told(stream: dict[str, Any], fault: str) -> None:
    _config, faults = read(stream)

    assert any(fault in each for each in faults), faults
