"""Telling the dead man's switch outside that all is well."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import ClassVar

import pytest

from reconciler.ping import ping


class Watcher(http.server.BaseHTTPRequestHandler):
    status: ClassVar[int] = 200
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Watcher, "asked", [])
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Watcher) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/ping"
        server.shutdown()
        thread.join()


def test_a_ping_is_one_request(url: str) -> None:
    assert ping(url)
    assert Watcher.asked == ["/ping"]


def test_a_refusal_is_no_error_of_ours(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watcher, "status", 500)

    assert not ping(url)


def test_a_watcher_that_is_not_there_is_no_error_of_ours() -> None:
    assert not ping("http://127.0.0.1:1/ping")
