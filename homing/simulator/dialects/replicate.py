"""`/replicate`: predictions and trainings as Replicate speaks of them.

The official Python client, `replicate` 1.0, completes its cycle here. Webhooks are the prediction itself, signed by
Standard Webhooks; the last retry of a terminal one comes about a minute after the end, others are never retried.
`"fail": "aborted"` in an input ends a prediction `aborted`. What `llm-stream` writes can be listened to at
`urls.stream`, the text itself as the data of each `output`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from flask import Response, jsonify, request

from homing.simulator import calls, stream_pages
from homing.simulator.dialects.dialect import (
    Dialect,
    address,
    choose_model,
    fields_of,
    file_urls,
    open_pages,
    read_body,
    reference_of,
    route,
    standard_seal,
)
from homing.simulator.instants import write_instant
from homing.simulator.provider import Provider
from homing.simulator.run import Order, Run, Status
from homing.simulator.streams import STREAMING_MODEL, Piece
from homing.simulator.webhooks import Delivery, Habits

NAME = "replicate"

_WORDS = {
    Status.QUEUED: "starting",
    Status.PROCESSING: "processing",
    Status.SUCCEEDED: "succeeded",
    Status.FAILED: "failed",
    Status.CANCELED: "canceled",
}
_LAST_RETRY_AFTER_A_MINUTE = Habits(waits_s=(5.0, 10.0, 20.0, 25.0))
_ONCE = Habits(waits_s=())
_DEFAULTS = {"prompt": "a pigeon flies home", "format": "png"}


def create(provider: Provider) -> Dialect:
    """The dialect over one provider."""
    replicate = _Replicate(provider)
    pages = open_pages(provider, NAME, error=say_error)
    route(
        pages,
        (
            ("POST", "/v1/predictions", replicate.predict),
            ("GET", "/v1/predictions", replicate.list_all),
            ("POST", "/v1/models/<owner>/<name>/predictions", replicate.predict),
            ("POST", "/v1/deployments/<owner>/<name>/predictions", replicate.predict),
            ("GET", "/v1/predictions/<run_id>", replicate.read),
            ("GET", "/v1/streams/<run_id>", replicate.listen),
            ("POST", "/v1/predictions/<run_id>/cancel", replicate.cancel),
            ("POST", "/v1/models/<owner>/<name>/versions/<version>/trainings", replicate.train),
            ("GET", "/v1/trainings/<run_id>", replicate.read),
            ("POST", "/v1/trainings/<run_id>/cancel", replicate.cancel),
            ("GET", "/v1/webhooks/default/secret", replicate.show_secret),
        ),
    )
    return Dialect(pages, replicate.tell)


def say_error(status: int, code: str, message: str) -> Response:
    """A refusal as Replicate words it: title, detail, status."""
    answer = jsonify(title=code.replace("_", " ").capitalize(), detail=message, status=status)
    answer.status_code = status
    return answer


class _Replicate:
    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._seal = standard_seal(provider)
        self._wording = calls.Wording(
            NAME,
            accepted=self._accepted,
            describe=self.describe,
            error=say_error,
            unknown_words=("defrosting", "Aborting", "EXPIRED"),
        )

    # Calls -----------------------------------------------------------------------------------------------

    def predict(self, owner: str | None = None, name: str | None = None) -> Response:
        body = read_body()
        if body is None or not isinstance(body.get("input"), dict):
            return say_error(422, "invalid_input", "- input is required")
        named = f"{owner}/{name}" if name else body.get("version")
        if not isinstance(named, str):
            return say_error(422, "invalid_input", "- version is required")
        model = choose_model(named.split(":")[0], default="video")
        if body.get("stream") is True and model != STREAMING_MODEL:
            return say_error(422, "invalid_input", "- the model does not stream")
        fields = fields_of(body["input"], default=_DEFAULTS)
        return self._submit(model, fields, asked={**body, "model": named, "path": "predictions"})

    def train(self, owner: str, name: str, version: str) -> Response:
        body = read_body()
        if body is None or not isinstance(body.get("destination"), str):
            return say_error(422, "invalid_input", "- destination is required")
        fields = fields_of(body.get("input"), default={"points": [[1, 2], [2, 4], [3, 6]]})
        asked = {**body, "model": f"{owner}/{name}", "version": version, "path": "trainings"}
        return self._submit("fine-tune", fields, asked=asked)

    def _submit(self, model: str, fields: dict[str, object], *, asked: dict[str, object]) -> Response:
        url = asked.get("webhook")
        callback_url = url if isinstance(url, str) else None
        order = Order(model, fields, callback_url, reference_of(callback_url), dialect=NAME, asked=asked, id_prefix="")
        return calls.submit(self._provider, order, wording=self._wording)

    def read(self, run_id: str) -> Response:
        return calls.read(self._provider, run_id, wording=self._wording)

    def listen(self, run_id: str) -> Response:
        """From after `Last-Event-ID`, where the simulator lets anybody resume."""
        place = request.headers.get("Last-Event-ID") if self._provider.config.stream_resume else None
        after = stream_pages.read_place((place or "0:0").rpartition(":")[2])
        return stream_pages.listen(self._provider, run_id, wording=self._wording, write=_write, after=after)

    def cancel(self, run_id: str) -> Response:
        show = self._shown
        return calls.cancel(self._provider, run_id, wording=self._wording, canceled=show, finished=show)

    def list_all(self) -> Response:
        runs = [run for run in self._provider.runs.list_runs() if run.order.dialect == NAME]
        return jsonify(previous=None, next=None, results=[self.describe(run) for run in reversed(runs[-100:])])

    def show_secret(self) -> Response:
        return jsonify(key=self._seal.secret)

    # Words -----------------------------------------------------------------------------------------------

    def _accepted(self, run: Run, replayed: bool) -> Response:  # noqa: ARG002 - it knows no keys
        answer = jsonify({**self.describe(run), "status": "starting", "output": None})
        answer.status_code = 201
        return answer

    def _shown(self, run: Run) -> Response:
        return jsonify(self.describe(run))

    def describe(self, run: Run) -> dict[str, object]:
        asked, outcome = run.order.asked, run.outcome
        url = f"{self._provider.base_url}/{NAME}/v1/{asked['path']}/{run.id}"
        stream = f"{self._provider.base_url}/{NAME}/v1/streams/{run.id}"
        streams = {"stream": stream} if run.order.model == STREAMING_MODEL else {}
        output = (outcome.output or {}).get("text") if outcome else None
        return {
            "id": run.id,
            "model": asked.get("model"),
            "version": asked.get("version", "hidden"),
            "input": asked.get("input"),
            "status": self._word(run),
            "output": None if run.status is not Status.SUCCEEDED else output or file_urls(self._provider, run),
            "error": outcome.error["message"] if outcome and outcome.error else None,
            "logs": f"{int(run.progress(self._provider.clock.monotonic()) * 100)}%|",
            "metrics": {"predict_time": round(run.duration_s, 3)} if run.status.is_terminal else {},
            "data_removed": False,
            "urls": {"get": url, "cancel": f"{url}/cancel", **streams},
            "created_at": write_instant(run.submitted_at),
            "started_at": None if run.status is Status.QUEUED else write_instant(run.submitted_at),
            "completed_at": None if run.finished_at is None else write_instant(run.finished_at),
        }

    def _word(self, run: Run) -> str:
        aborted = run.status is Status.FAILED and run.order.input.get("fail") == "aborted"
        return "aborted" if aborted else _WORDS[run.status]

    def tell(self, run: Run, status: Status) -> Delivery | None:
        """`start` and `completed`, as far as they were asked for."""
        wanted = run.order.asked.get("webhook_events_filter")
        event = "completed" if status.is_terminal else "start"
        if isinstance(wanted, list) and event not in wanted:
            return None
        habits = _LAST_RETRY_AFTER_A_MINUTE if status.is_terminal else _ONCE
        return address(self._provider, run, status, self.describe(run), seal=self._seal, habits=habits)


def _write(run: Run, told: Iterator[Piece | None]) -> Iterator[str]:
    began, last = int(run.submitted_at.timestamp()), 0
    for piece in told:
        if piece is None:
            yield stream_pages.COMMENT
        else:
            last = piece.number
            yield stream_pages.event("output", piece.text, event_id=f"{began}:{last}")
    if run.outcome and run.outcome.error:
        yield stream_pages.event("error", run.outcome.error["message"], event_id=f"{began}:{last + 1}")
    reasons = {Status.FAILED: {"reason": "error"}, Status.CANCELED: {"reason": "canceled"}}
    yield stream_pages.event("done", json.dumps(reasons.get(run.status, {})), event_id=f"{began}:{last + 2}")
