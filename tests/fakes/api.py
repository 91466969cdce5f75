"""A fleet's API as its clients see it: canned answers over real HTTP, and a record of what was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class Stream(str):
    """The text of a stream that then ends."""

    __slots__ = ()


@dataclass
class FakeApi:
    """Answers each route with what it was told, in order; the last answer of a route is repeated."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def on(self, route: str, document: Any, status: int = 200) -> None:
        """Adds an answer, as in ``api.on("GET /v1/jobs", {...})``."""
        self.answers.setdefault(route, []).append((status, document))

    def answer(self, asked: Asked) -> tuple[int, Any]:
        self.asked.append(asked)
        known = self.answers.get(f"{asked.method} {asked.path}")
        if known is None:
            return 404, {"type": "urn:homing:problem:not-found", "title": "Not here", "detail": "no such thing"}
        return known.pop(0) if len(known) > 1 else known[0]


@contextmanager
def serving_api() -> Iterator[FakeApi]:
    """A fake API on a port of its own."""
    api = FakeApi()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body leave together: apart, the second waits for the first to be acknowledged

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = Asked(
                self.command,
                parts.path,
                dict(parse_qsl(parts.query)),
                dict(self.headers),
                json.loads(raw) if raw else None,
            )
            status, document = api.answer(asked)
            body = document.encode() if isinstance(document, str) else json.dumps(document).encode()
            self.send_response(status)
            if isinstance(document, Stream):
                self.send_header("Content-Type", "text/event-stream")
            for name, value in api.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _serve  # noqa: N815 - the names http.server calls

        def log_message(self, *_args: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        api.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()


def a_job(**changes: Any) -> dict[str, Any]:
    """A job as the API shows it."""
    return {
        "id": "job_1",
        "provider": "sim",
        "provider_job_id": None,
        "state": "pending",
        "version": 1,
        "progress": None,
        "review": None,
        "finished_at": None,
        "created_at": "2026-01-01T00:00:00.000000Z",
        **changes,
    }
