"""`/openai/v1`: files, batches, background responses and fine-tuning jobs as OpenAI speaks of them.

The official Python client, `openai` 3, completes its cycle here. Webhooks are thin and go to the account's URL
(`--webhook-url`), signed by Standard Webhooks. What our models need beside OpenAI's own fields stands in `metadata`, as
text: `duration_s`, and `fail`, which may also ask for the end `expired` (batch) or `incomplete` (response). A row of a
batch fails by `"fail": true` in its body. A batch is `cancelling` for a while. A response that was created with
`stream` can be listened to, and listened to again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from flask import Response, jsonify, request

from homing.simulator import calls, stream_pages
from homing.simulator.dialects.dialect import Dialect, choose_model, open_pages, read_body, route, standard_seal
from homing.simulator.dialects.openai_files import Files, read_points, read_rows
from homing.simulator.dialects.openai_stream import first_piece_after, write
from homing.simulator.dialects.openai_words import BATCH, FINE_TUNE, RESPONSE, describe, word_of
from homing.simulator.provider import Provider
from homing.simulator.run import Order, Run, Status
from homing.simulator.webhooks import Delivery, Habits
from jobs.ids import new_id

NAME = "openai"

#: How long a batch is `cancelling`, in seconds: OpenAI takes up to ten minutes.
CANCELING_S = 1.0

_EVENTS = {BATCH: "batch", RESPONSE: "response", FINE_TUNE: "fine_tuning.job"}
_FOR_DAYS = Habits(waits_s=(5.0, 30.0, 300.0, 1800.0, 7200.0))
_MAX_PAGE = 100


def create(provider: Provider) -> Dialect:
    """The dialect over one provider."""
    openai = _OpenAI(provider)
    pages = open_pages(provider, NAME, error=say_error)
    route(
        pages,
        (
            ("POST", "/v1/files", openai.upload),
            ("GET", "/v1/files/<file_id>", openai.show_file),
            ("GET", "/v1/files/<file_id>/content", openai.show_content),
            ("POST", "/v1/batches", openai.begin_batch),
            ("POST", "/v1/responses", openai.begin_response),
            ("POST", "/v1/fine_tuning/jobs", openai.begin_tuning),
            ("GET", "/v1/batches", lambda: openai.list_all(BATCH)),
            ("GET", "/v1/fine_tuning/jobs", lambda: openai.list_all(FINE_TUNE)),
        ),
    )
    for path in ("batches", "responses", "fine_tuning/jobs"):
        route(
            pages,
            (
                ("GET", f"/v1/{path}/<run_id>", openai.read),
                ("POST", f"/v1/{path}/<run_id>/cancel", openai.cancel),
            ),
        )
    return Dialect(pages, openai.tell)


def say_error(status: int, code: str, message: str) -> Response:
    """A refusal as OpenAI words it."""
    kind = "invalid_request_error" if status < 429 else "server_error"
    answer = jsonify(error={"message": message, "type": kind, "param": None, "code": code})
    answer.status_code = status
    return answer


class _OpenAI:
    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._seal = standard_seal(provider)
        self._files = Files(provider.clock)
        self._lock = threading.Lock()
        self._canceling: set[str] = set()
        self._wording = calls.Wording(
            NAME,
            accepted=self._accepted,
            describe=self._describe,
            error=say_error,
            unknown_words=("paused", "hibernating", "EXPIRING"),
        )

    # Files -----------------------------------------------------------------------------------------------

    def upload(self) -> Response:
        sent, purpose = request.files.get("file"), request.form.get("purpose")
        if sent is None or not purpose:
            return say_error(400, "missing_required_parameter", "file and purpose are required")
        return jsonify(self._files.put(sent.read(), name=sent.filename or "file", purpose=purpose).to_json())

    def show_file(self, file_id: str) -> Response:
        file = self._files.get(file_id)
        return _no_file(file_id) if file is None else jsonify(file.to_json())

    def show_content(self, file_id: str) -> Response:
        file = self._files.get(file_id)
        return _no_file(file_id) if file is None else Response(file.content, mimetype="application/octet-stream")

    # Submits ---------------------------------------------------------------------------------------------

    def begin_batch(self) -> Response:
        body = read_body() or {}
        file = self._files.get(body.get("input_file_id"))
        if file is None or not isinstance(body.get("endpoint"), str):
            return say_error(400, "invalid_request", "input_file_id must name a file, and endpoint a path")
        rows = read_rows(file.content)
        table = [{"custom_id": row.custom_id, "prompt": row.prompt} for row in rows]
        return self._submit(
            "export", {"rows": table}, body=body, asked={"object": BATCH, "rows": rows}, prefix="batch_"
        )

    def begin_response(self) -> Response:
        body = read_body() or {}
        prompt = body.get("input")
        if body.get("background") is not True or not prompt:
            return say_error(400, "invalid_request", "input is required, and background must be true here")
        fields: dict[str, object] = {"prompt": prompt if isinstance(prompt, str) else json.dumps(prompt)}
        model = choose_model(body.get("model"), default="llm-stream")
        return self._submit(model, fields, body=body, asked={"object": RESPONSE}, prefix="resp_")

    def begin_tuning(self) -> Response:
        body = read_body() or {}
        file = self._files.get(body.get("training_file"))
        if file is None or not isinstance(body.get("model"), str):
            return say_error(400, "invalid_request", "training_file must name a file, and model a model")
        asked = {"object": FINE_TUNE, "tokens": len(file.content.split())}
        points = list(read_points(file.content))
        return self._submit("fine-tune", {"points": points}, body=body, asked=asked, prefix="ftjob-")

    def _submit(
        self, model: str, fields: dict[str, object], *, body: dict[str, Any], asked: dict[str, object], prefix: str
    ) -> Response:
        metadata = body.get("metadata") if isinstance(body.get("metadata"), dict) else {}
        order = Order(
            model,
            {**fields, **_asked_in(metadata or {})},
            self._provider.config.webhook_url,
            dialect=NAME,
            asked={**body, **asked},
            id_prefix=prefix,
        )
        return calls.submit(self._provider, order, wording=self._wording)

    # Reads, cancels --------------------------------------------------------------------------------------

    def read(self, run_id: str) -> Response:
        if request.args.get("stream") == "true":
            return self._listen(run_id)
        return calls.read(self._provider, run_id, wording=self._wording)

    def _listen(self, run_id: str) -> Response:
        run = calls.find_run(self._provider, run_id, dialect=NAME)
        if run is not None and not run.order.asked.get("stream"):
            return say_error(400, "invalid_request_error", "this response was not created with stream=true")
        last = request.args.get("starting_after", "-1")
        known = int(last) if last.isascii() and last.removeprefix("-").isdigit() else None
        return stream_pages.listen(
            self._provider,
            run_id,
            wording=self._wording,
            write=lambda run, told: write(run, told, describe=self._describe, known=known or 0),
            after=None if known is None else first_piece_after(known),
        )

    def cancel(self, run_id: str) -> Response:
        return calls.cancel(
            self._provider,
            run_id,
            wording=self._wording,
            canceled=lambda run: jsonify(self._describe(run)),
            finished=lambda run: say_error(409, "conflict", f"cannot cancel what is {word_of(run)}"),
            act=self._cancel,
        )

    def _cancel(self, run: Run) -> bool:
        """A batch takes its time; the others end at once."""
        if run.order.asked["object"] != BATCH or run.status.is_terminal:
            return self._provider.life.cancel(run)
        with self._lock:
            self._canceling.add(run.id)
        wait_s = CANCELING_S * self._provider.config.time_scale
        self._provider.scheduler.after(wait_s, lambda: self._provider.life.cancel(run))
        return True

    def list_all(self, kind: str) -> Response:
        until = self._provider.clock.now() - self._provider.config.search_lag
        runs = [run for run in self._provider.runs.list_runs() if run.submitted_at <= until and _is(run, kind)]
        wanted = {name[9:-1]: value for name, value in request.args.items() if name.startswith("metadata[")}
        found = [run for run in reversed(runs) if wanted.items() <= _metadata_of(run).items()]
        after = request.args.get("after")
        start = next((index + 1 for index, run in enumerate(found) if run.id == after), 0)
        page = found[start : start + min(request.args.get("limit", 20, type=int), _MAX_PAGE)]
        self._provider.ledger.record_search(reference=next(iter(wanted.values()), None), key=None, found=len(page))
        more = start + len(page) < len(found)
        return jsonify(object="list", data=[self._describe(run) for run in page], has_more=more)

    # Words -----------------------------------------------------------------------------------------------

    def _accepted(self, run: Run, replayed: bool) -> Response:  # noqa: ARG002 - it knows no keys
        if not run.order.asked.get("stream"):
            return jsonify(self._describe(run))
        tell = partial(write, describe=self._describe, known=-1)
        return stream_pages.tell(self._provider, run, write=tell)

    def _describe(self, run: Run) -> dict[str, object]:
        shown = describe(run, self._files)
        with self._lock:
            canceling = run.id in self._canceling and not run.status.is_terminal
        return {**shown, "status": "cancelling"} if canceling else shown

    def tell(self, run: Run, status: Status) -> Delivery | None:
        """The end of a run, as a pointer to it."""
        if run.order.callback_url is None or not status.is_terminal:
            return None
        now = self._provider.clock.now()
        event_id = new_id("evt", at=now)
        event = {
            "id": event_id,
            "object": "event",
            "type": f"{_EVENTS[str(run.order.asked['object'])]}.{word_of(run)}",
            "created_at": int(now.timestamp()),
            "data": {"id": run.id},
        }
        raw = json.dumps(event).encode()
        return Delivery(event_id, run.id, status.value, run.order.callback_url, raw, seal=self._seal, habits=_FOR_DAYS)


def _metadata_of(run: Run) -> dict[str, object]:
    metadata = run.order.asked.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _is(run: Run, kind: str) -> bool:
    return run.order.dialect == NAME and run.order.asked["object"] == kind


def _asked_in(metadata: dict[str, object]) -> dict[str, object]:
    """What `metadata` says to our models, of which only numbers need another type."""
    read: tuple[tuple[str, Callable[[str], object]], ...] = (("duration_s", _number), ("fail", str))
    return {name: to(str(metadata[name])) for name, to in read if name in metadata}


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text  # the run fails by it, as by any bad input


def _no_file(file_id: str) -> Response:
    return say_error(404, "not_found", f"no such file object: {file_id}")
