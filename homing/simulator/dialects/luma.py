"""`/luma`: generations as Luma's Dream Machine speaks of them.

The official Python client, `lumaai` 1.21, completes its cycle here when aimed at `<simulator>/luma/dream-machine/v1`.
There is no idempotency key; the list repeats each request, its `callback_url` included, newest first. Each change of
state is posted to that URL, unsigned, at most three more times 100 ms apart, and nothing but a 200 is a success.
A deleted generation is gone: its reads are 404.
"""

from __future__ import annotations

from collections.abc import Mapping

from flask import Response, jsonify, request

from homing.simulator import calls
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
    say_detail,
)
from homing.simulator.instants import write_instant
from homing.simulator.provider import Provider
from homing.simulator.run import Order, Run, Status
from homing.simulator.webhooks import UNSIGNED, Delivery, Habits

NAME = "luma"

_ROOT = "/dream-machine/v1/generations"
_WORDS = {
    Status.QUEUED: "queued",
    Status.PROCESSING: "dreaming",
    Status.SUCCEEDED: "completed",
    Status.FAILED: "failed",
    Status.CANCELED: "failed",
}
_THREE_IN_300_MS = Habits(waits_s=(0.1, 0.1, 0.1), only_200=True)
_DEFAULTS: dict[str, dict[str, object]] = {
    "video": {"prompt": "a pigeon flies home"},
    "image": {"prompt": "a pigeon flies home", "format": "png"},
}
_PAGE_ITEMS, _MAX_PAGE_ITEMS = 10, 100


def create(provider: Provider) -> Dialect:
    """The dialect over one provider."""
    luma = _Luma(provider)
    pages = open_pages(provider, NAME, error=say_detail)
    route(
        pages,
        (
            ("POST", f"{_ROOT}/video", lambda: luma.generate("video")),
            ("POST", f"{_ROOT}/image", lambda: luma.generate("image")),
            ("GET", _ROOT, luma.list_all),
            ("GET", f"{_ROOT}/<run_id>", luma.read),
            ("DELETE", f"{_ROOT}/<run_id>", luma.delete),
        ),
    )
    return Dialect(pages, luma.tell)


class _Luma:
    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._wording = calls.Wording(
            NAME,
            accepted=self._accepted,
            describe=self.describe,
            error=say_detail,
            status_field="state",
            unknown_words=("daydreaming", "Moderated", "EXPIRED"),
        )

    # Calls -----------------------------------------------------------------------------------------------

    def generate(self, kind: str) -> Response:
        body = read_body()
        if body is None or not isinstance(body.get("model"), str):
            return say_detail(422, "invalid_request", "model is required")
        url = body.get("callback_url")
        callback_url = url if isinstance(url, str) else None
        order = Order(
            choose_model(body["model"], default="video"),
            _fields(body, kind),
            callback_url,
            reference_of(callback_url),
            dialect=NAME,
            asked={**body, "generation_type": kind},
            id_prefix="",
        )
        return calls.submit(self._provider, order, wording=self._wording)

    def list_all(self) -> Response:
        limit = min(request.args.get("limit", _PAGE_ITEMS, type=int), _MAX_PAGE_ITEMS)
        offset = request.args.get("offset", 0, type=int)
        until = self._provider.clock.now() - self._provider.config.search_lag
        runs = [run for run in self._provider.runs.list_runs() if self._is_listed(run) and run.submitted_at <= until]
        page = list(reversed(runs))[offset : offset + limit]
        self._provider.ledger.record_search(reference=None, key=None, found=len(page))
        has_more = len(runs) > offset + limit
        shown = [self.describe(run) for run in page]
        return jsonify(generations=shown, count=len(page), limit=limit, offset=offset, has_more=has_more)

    def read(self, run_id: str) -> Response:
        run = self._provider.runs.find(run_id)
        if run is not None and not self._is_listed(run):
            self._provider.ledger.record_read(run_id=run_id, answer=404)
            return say_detail(404, "not_found", "Generation not found")
        return calls.read(self._provider, run_id, wording=self._wording)

    def delete(self, run_id: str) -> Response:
        return calls.cancel(self._provider, run_id, wording=self._wording, canceled=_gone, finished=_gone)

    # Words -----------------------------------------------------------------------------------------------

    @staticmethod
    def _is_listed(run: Run) -> bool:
        return run.order.dialect == NAME and run.status is not Status.CANCELED

    def _accepted(self, run: Run, replayed: bool) -> Response:  # noqa: ARG002 - it knows no keys
        answer = jsonify({**self.describe(run), "state": "queued", "assets": None})
        answer.status_code = 201
        return answer

    def describe(self, run: Run) -> dict[str, object]:
        asked, outcome = run.order.asked, run.outcome
        kind = str(asked["generation_type"])
        urls = file_urls(self._provider, run) if run.status is Status.SUCCEEDED else []
        return {
            "id": run.id,
            "generation_type": kind,
            "state": _WORDS[run.status],
            "failure_reason": outcome.error["message"] if outcome and outcome.error else None,
            "created_at": write_instant(run.submitted_at),
            "assets": {kind: urls[0]} if urls else None,
            "model": asked["model"],
            "request": dict(asked),
        }

    def tell(self, run: Run, status: Status) -> Delivery | None:
        """The generation as it stands: `dreaming`, `completed`, `failed`."""
        if status is Status.CANCELED:
            return None
        document = {**self.describe(run), "state": _WORDS[status]}
        return address(self._provider, run, status, document, seal=UNSIGNED, habits=_THREE_IN_300_MS)


def _fields(body: Mapping[str, object], kind: str) -> dict[str, object]:
    """Our model's input: without the URL, which differs between jobs that are otherwise the same."""
    given = {name: value for name, value in body.items() if name not in ("callback_url", "model")}
    return fields_of(given, default=_DEFAULTS[kind])


def _gone(run: Run) -> Response:  # noqa: ARG001 - nothing is said of it
    return Response(status=204)
