"""`/higgsfield`: generation requests as Higgsfield speaks of them.

The official Python client, `higgsfield-client` 0.2, completes its cycle here when aimed at `<simulator>/higgsfield`; it
follows the `status_url` and `cancel_url` of the answer. An `Idempotency-Key` used before answers the first request's
id; with another body or webhook, 422. Only what is still queued can be canceled. The webhook (`?hf_webhook=`) is told
of ends only, unsigned, until it answers 2xx. `"fail": "nsfw"` in an input ends a request `nsfw`.
"""

from __future__ import annotations

from flask import Response, jsonify, request

from homing.simulator import calls
from homing.simulator.dialects.dialect import (
    Dialect,
    address,
    choose_model,
    fields_of,
    open_pages,
    read_body,
    reference_of,
    route,
    say_detail,
)
from homing.simulator.provider import Provider
from homing.simulator.run import Order, Run, Status
from homing.simulator.webhooks import UNSIGNED, Delivery, Habits

NAME = "higgsfield"

_WORDS = {
    Status.QUEUED: "queued",
    Status.PROCESSING: "in_progress",
    Status.SUCCEEDED: "completed",
    Status.FAILED: "failed",
    Status.CANCELED: "canceled",
}
_UNTIL_TAKEN = Habits(waits_s=(0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0))
_DEFAULTS = {"prompt": "a pigeon flies home"}
_MAX_KEY_CHARS = 255


def create(provider: Provider) -> Dialect:
    """The dialect over one provider."""
    higgsfield = _Higgsfield(provider)
    pages = open_pages(provider, NAME, error=say_detail, scheme="Key ")
    route(
        pages,
        (
            ("GET", "/requests/<run_id>/status", higgsfield.read),
            ("POST", "/requests/<run_id>/cancel", higgsfield.cancel),
            ("POST", "/<path:model>", higgsfield.generate),
        ),
    )
    return Dialect(pages, higgsfield.tell)


class _Higgsfield:
    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._wording = calls.Wording(
            NAME,
            accepted=self._accepted,
            describe=self.describe,
            error=say_detail,
            unknown_words=("upscaling", "Moderated", "EXPIRED"),
        )

    # Calls -----------------------------------------------------------------------------------------------

    def generate(self, model: str) -> Response:
        body, key = read_body(), request.headers.get("Idempotency-Key")
        if body is None:
            return say_detail(422, "invalid_request", "the body must be a JSON object")
        if key is not None and not _is_key(key):
            return say_detail(422, "invalid_key", "Idempotency-Key must be 1 to 255 visible ASCII characters")
        callback_url = request.args.get("hf_webhook")
        order = Order(
            choose_model(model, default="video"),
            fields_of(body, default=_DEFAULTS),
            callback_url,
            reference_of(callback_url),
            key,
            dialect=NAME,
            asked={"model": model, "body": body, "webhook": callback_url},
            id_prefix="",
        )
        if self._contradicts(order):
            self._note_refused(order)
            return say_detail(422, "key_mismatch", "Idempotency-Key was used before with different parameters")
        return calls.submit(self._provider, order, wording=self._wording)

    def _contradicts(self, order: Order) -> bool:
        """A used key answers its first request, and no other."""
        if order.key is None or self._provider.config.idempotency == "none":
            return False
        known = self._provider.runs.find_by_key(order.key, window=self._provider.config.idempotency_window)
        return known is not None and known.order.asked != order.asked

    def _note_refused(self, order: Order) -> None:
        ledger = self._provider.ledger
        ledger.record_submit(key=order.key, reference=order.reference, run_id=None, answer=422, fault=None)

    def read(self, run_id: str) -> Response:
        return calls.read(self._provider, run_id, wording=self._wording)

    def cancel(self, run_id: str) -> Response:
        run = calls.find_run(self._provider, run_id, dialect=NAME)
        if run is not None and run.status is Status.PROCESSING:
            self._provider.ledger.record_cancel(run_id=run_id, answer=400)
            return _too_late(run)
        return calls.cancel(self._provider, run_id, wording=self._wording, canceled=_taken, finished=_too_late)

    # Words -----------------------------------------------------------------------------------------------

    def _accepted(self, run: Run, replayed: bool) -> Response:
        status = _word(run) if replayed else "queued"
        return jsonify({"status": status, **self._names(run)})

    def _names(self, run: Run) -> dict[str, object]:
        url = f"{self._provider.base_url}/{NAME}/requests/{run.id}"
        return {"request_id": run.id, "status_url": f"{url}/status", "cancel_url": f"{url}/cancel"}

    def describe(self, run: Run) -> dict[str, object]:
        outcome = run.outcome
        error = {"error": outcome.error["message"]} if outcome and outcome.error else {}
        return {"status": _word(run), **self._names(run), **error, **self._results(run)}

    def _results(self, run: Run) -> dict[str, object]:
        if run.status is not Status.SUCCEEDED:
            return {}
        files = self._provider.files.describe(run, base_url=self._provider.base_url)
        found = [{"url": file["url"]} for file in files]
        named: dict[str, object] = {"images": found} if run.order.input.get("format") == "png" else {"video": found[0]}
        return {**named, "expires_at": files[0]["expires_at"]}

    def tell(self, run: Run, status: Status) -> Delivery | None:
        """The request as it stands, once it is `completed`, `failed` or `nsfw`."""
        if status not in (Status.SUCCEEDED, Status.FAILED):
            return None
        return address(self._provider, run, status, self.describe(run), seal=UNSIGNED, habits=_UNTIL_TAKEN)


def _word(run: Run) -> str:
    moderated = run.status is Status.FAILED and run.order.input.get("fail") == "nsfw"
    return "nsfw" if moderated else _WORDS[run.status]


def _is_key(text: str) -> bool:
    return len(text) <= _MAX_KEY_CHARS and all("!" <= char <= "~" for char in text)


def _taken(run: Run) -> Response:  # noqa: ARG001 - nothing is said of it
    return Response(status=202)


def _too_late(run: Run) -> Response:  # noqa: ARG001 - nothing is said of it
    return say_detail(400, "not_cancelable", "the request can no longer be canceled")
