"""The provider of the work that ails: a small one, in the simulator's words, which never fails by chance."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

import requests

from homing.simulator.config import DEMO_SECRET
from homing.up.ports import free_port
from jobs.core.signatures import sign
from tests.crashing.ailments import UNREADABLE, Ward

_WORKS_S = 0.5
_AGAIN_S = 0.5
_TIMEOUT_S = 5
_FILE = b"what was asked for\n"
_NO = {"error": {"code": "payment_required", "message": "the account is overdrawn"}}
Answer: TypeAlias = "tuple[int, dict[str, Any] | bytes]"


@dataclass(slots=True)
class _Run:
    """One run, at work until its time is over or it is canceled."""

    id: str
    reference: str
    key: str
    callback_url: str
    begun_s: float
    is_canceled: bool = False

    @property
    def status(self) -> str:
        if self.is_canceled:
            return "canceled"
        is_over = time.monotonic() - self.begun_s > _WORKS_S and not self.id.startswith("ail_cancel")
        return "succeeded" if is_over else "processing"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A caller that was killed in the middle is no news."""


class Clinic:
    """Listens under ``/<entry>/…``, and keeps books like the simulator's."""

    def __init__(self, ward: Ward) -> None:
        self._ward = ward
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}
        self._webhooks: list[dict[str, Any]] = []
        self._closing = threading.Event()
        self.submits = 0
        self._server = _Server(("127.0.0.1", free_port()), _handler(self.answer))
        threading.Thread(target=self._server.serve_forever, name="clinic", daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def books(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Its runs and its webhooks, as a ledger has them."""
        with self._lock:
            runs = [{"id": run.id, "reference": run.reference, "status": run.status} for run in self._runs.values()]
            return runs, list(self._webhooks)

    def answer(self, method: str, path: str, key: str, body: Any) -> Answer:
        """What a request comes to."""
        parts = urlsplit(path)
        entry, what, *rest = parts.path.strip("/").split("/")
        if what == "files":
            return (404, {}) if self._ward.is_ill("ail_artifact") else (200, _FILE)
        if method == "POST" and not rest:
            return self._submit(entry, key, body)
        if not rest:
            return self._search(parse_qs(parts.query))
        run = self._runs.get(rest[0])
        if run is None:
            return 404, {}
        return self._cancel(entry, run) if rest[1:] == ["cancel"] else (200, self._describe(entry, run))

    def _submit(self, entry: str, key: str, body: dict[str, Any]) -> Answer:
        with self._lock:
            self.submits += 1
            known = next((run for run in self._runs.values() if run.key == key), None)
            if known is not None:
                return 200, {"id": known.id, "status": known.status}
            if entry == "ail_submit" and self._ward.is_ill(entry):
                return 402, _NO
            name = f"{entry}-{len(self._runs):04d}"
            run = _Run(name, body["reference"], key, body["callback_url"], time.monotonic())
            self._runs[name] = run
        if entry == "ail_inbox":
            threading.Thread(target=self._call_back, args=(run,), name="clinic-calls", daemon=True).start()
        return 201, {"id": name, "status": "queued"}

    def _search(self, query: dict[str, list[str]]) -> Answer:
        with self._lock:
            found = [
                {"id": run.id, "status": run.status}
                for run in self._runs.values()
                if [run.reference] == query.get("reference") or [run.key] == query.get("idempotency_key")
            ]
        return 200, {"jobs": found}

    def _cancel(self, entry: str, run: _Run) -> Answer:
        if entry == "ail_cancel" and self._ward.is_ill(entry):
            return 402, _NO
        if run.status == "succeeded":
            return 409, {}
        run.is_canceled = True
        return 200, self._describe(entry, run)

    def _describe(self, entry: str, run: _Run) -> dict[str, Any]:
        facts: dict[str, Any] = {"id": run.id, "status": run.status}
        if entry == "ail_artifact" and run.status == "succeeded":
            file = {"url": f"{self.url}/{entry}/files/{run.id}.txt", "content_type": "text/plain", "size": len(_FILE)}
            facts["artifacts"] = [file]
        return facts

    def _call_back(self, run: _Run) -> None:
        """Until it is taken: what the provider says of the run's end, and what nobody can read."""
        self._closing.wait(_WORKS_S)
        said = json.dumps({"id": f"evt-{run.id}", "job": run.id, "status": "succeeded"}).encode()
        waiting = {f"evt-{run.id}": said, f"{UNREADABLE}{run.id}": b"\x00 is no JSON"}
        while waiting and not self._closing.is_set():
            for event_id, body in list(waiting.items()):
                answer = _post(run.callback_url, event_id, body)
                with self._lock:
                    self._webhooks.append({"id": event_id, "job": run.id, "answer": answer})
                if isinstance(answer, int) and 200 <= answer < 300:
                    del waiting[event_id]
            self._closing.wait(_AGAIN_S)


def _post(url: str, event_id: str, body: bytes) -> int | str:
    headers = sign("standard-webhooks", secret=DEMO_SECRET, body=body, delivery_id=event_id, at=datetime.now(UTC))
    try:
        answer = requests.post(url, data=body, headers=headers, timeout=_TIMEOUT_S)
    except requests.RequestException as error:
        return type(error).__name__
    return answer.status_code


def _handler(answer: Callable[[str, str, str, Any], Answer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def _answer(self, method: str) -> None:
            given = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            key = self.headers.get("Idempotency-Key", "")
            status, document = answer(method, self.path, key, json.loads(given or b"{}"))
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if isinstance(document, bytes) else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: the harness has its own log."""

    return Handler
