"""The effect sink: counts every call, so that a demo can prove that each effect happened exactly once.

It is no part of the provider; it stands here because it must outlive every process under test.
"""

from __future__ import annotations

import threading
from collections import Counter

from flask import Blueprint, jsonify, request
from flask.typing import ResponseReturnValue


class Sink:
    """Counts calls by job, by event and by type."""

    def __init__(self) -> None:
        """Build it empty."""
        self._lock = threading.Lock()
        self._jobs: Counter[str] = Counter()
        self._events: Counter[str] = Counter()
        self._types: Counter[str] = Counter()

    def count(self, *, event: str, job: str, kind: str) -> int:
        """Count one call; how many this job has had with it."""
        with self._lock:
            self._events[event] += 1
            self._types[kind] += 1
            self._jobs[job] += 1
            return self._jobs[job]

    def snapshot(self) -> dict[str, object]:
        """Return all counts."""
        with self._lock:
            return {
                "total": self._jobs.total(),
                "jobs": dict(self._jobs),
                "events": dict(self._events),
                "types": dict(self._types),
            }


def create_sink_pages(sink: Sink) -> Blueprint:
    """`POST /sink` with `{event, job, type}`, and `GET /sink`."""
    pages = Blueprint("sink", __name__)

    @pages.post("/sink")
    def count() -> ResponseReturnValue:
        body = request.get_json(force=True, silent=True)
        given = body if isinstance(body, dict) else {}
        event, job, kind = (given.get(name) for name in ("event", "job", "type"))
        if not (isinstance(event, str) and isinstance(job, str) and isinstance(kind, str)):
            return jsonify(error={"code": "invalid", "message": "expected texts event, job and type"}), 422
        return jsonify(count=sink.count(event=event, job=job, kind=kind)), 201

    @pages.get("/sink")
    def show() -> ResponseReturnValue:
        return jsonify(sink.snapshot())

    return pages
