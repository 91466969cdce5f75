"""What a response says while it is written, from a server that says exactly the bytes a test wants."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from jobs.clock import FakeClock
from jobs.config.entries import read_providers
from jobs.config.providers import ADAPTERS
from jobs.config.secret_sources import SecretSources
from jobs.net.http import HttpClient
from jobs.providers.registry import build_adapter
from tests.fakes.raw_server import raw_server, says

OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def an_event(kind: str, **said: object) -> bytes:
    return b"data: " + json.dumps({"type": kind, **said}).encode() + b"\n\n"


def told(*events: bytes, after: str | None) -> list[tuple[str, str | None]]:
    """The pieces, and their places."""
    with raw_server(says(OPEN, *events)) as server, closing(HttpClient()) as client:
        entry = {"adapter": "openai", "base_url": server.url, "api_token": "t", "webhook_secrets": []}
        faults: list[str] = []
        sources = SecretSources({}, Path(), plain_allowed=True)
        config = read_providers({"p": entry}, adapters=ADAPTERS, secrets=sources, faults=faults)["p"]
        adapter: Any = build_adapter(config, client, FakeClock())
        return [(piece.text, piece.place) for piece in adapter.follow_output("resp_1", after=after)]


def test_what_is_said_again_although_it_was_asked_to_go_on_is_not_heard_again() -> None:
    """A gateway between may know nothing of `starting_after`, and begin at the beginning."""
    kind = "response.output_text.delta"
    said = [an_event(kind, sequence_number=number, delta=text) for number, text in enumerate(["The ", "pigeon ", "."])]
    end = an_event("response.completed", sequence_number=3)

    assert told(*said, end, after="1") == [(".", "2")]
    assert told(*said, end, after=None) == [("The ", "0"), ("pigeon ", "1"), (".", "2")]
