"""`/fal`: the queue of fal.

The official Python client, `fal-client` 1.0, completes its cycle here, following the URLs it is given. A failed run is
`COMPLETED` with an `error`. One webhook per request, `OK` or `ERROR`, signed with the simulator's Ed25519 key, whose
public half is at `/fal/.well-known/jwks.json`. `"payload_error": true` in an input leaves the result out of it.
"""

from __future__ import annotations

import base64
import hashlib
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from flask import Response, jsonify, request

from homing.simulator import answers, calls
from homing.simulator.dialects.dialect import (
    Dialect,
    choose_model,
    fields_of,
    open_pages,
    read_body,
    reference_of,
    route,
)
from homing.simulator.provider import Provider
from homing.simulator.run import Order, Run, Status
from homing.simulator.webhooks import Delivery, Habits, Seal

NAME = "fal"

_WORDS = {Status.QUEUED: "IN_QUEUE", Status.PROCESSING: "IN_PROGRESS"}
_TEN_IN_TWO_HOURS = Habits(waits_s=(5.0, 15.0, 45.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3000.0))
_DEFAULTS = {"prompt": "a pigeon flies home", "format": "png"}


def create(provider: Provider) -> Dialect:
    """The dialect over one provider."""
    fal = _Fal(provider)
    pages = open_pages(provider, NAME, error=say_error, scheme="Key ")
    apps = ("/<owner>/<app>", "/<any(workflows, comfy):space>/<owner>/<app>")
    for app in apps:
        route(
            pages,
            (
                ("POST", app, fal.submit),
                ("POST", f"{app}/<path:rest>", fal.submit),
                ("GET", f"{app}/requests/<run_id>/status", fal.read),
                ("GET", f"{app}/requests/<run_id>", fal.show_result),
                ("PUT", f"{app}/requests/<run_id>/cancel", fal.cancel),
            ),
        )
    route(pages, (("GET", "/.well-known/jwks.json", fal.show_keys),))
    return Dialect(pages, fal.tell)


def say_error(status: int, code: str, message: str) -> Response:
    """A refusal as fal words it: detail and error_type."""
    answer = jsonify(detail=message, error_type=code)
    answer.status_code = status
    return answer


class _Fal:
    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._key = _make_key(f"fal {provider.config.webhook_secret}")
        other = _make_key("nobody was given this key")
        self._seal = Seal("fal", _encode(self._key.private_bytes_raw()), _encode(other.private_bytes_raw()))
        self._wording = calls.Wording(
            NAME,
            accepted=self._accepted,
            describe=self._describe,
            error=say_error,
            unknown_words=("WARMING_UP", "ABORTED", "EXPIRED"),
        )

    # Calls -----------------------------------------------------------------------------------------------

    def submit(self, **path: str) -> Response:
        body = read_body()
        if body is None:
            return say_error(422, "invalid_input", "the body must be a JSON object")
        name = "/".join(path[part] for part in ("space", "owner", "app", "rest") if part in path)
        callback_url = request.args.get("fal_webhook")
        asked = {"app": "/".join(path[part] for part in ("space", "owner", "app") if part in path)}
        fields = fields_of(body, default=_DEFAULTS)
        order = Order(
            choose_model(name, default="video"), fields, callback_url, reference_of(callback_url), dialect=NAME,
            asked=asked, id_prefix="",
        )  # fmt: skip
        return calls.submit(self._provider, order, wording=self._wording)

    def read(self, run_id: str, **_path: str) -> Response:
        return calls.read(self._provider, run_id, wording=self._wording)

    def show_result(self, run_id: str, **_path: str) -> Response:
        run = calls.find_run(self._provider, run_id, dialect=NAME)
        if run is None:
            return say_error(404, "not_found", "request not found")
        if not run.status.is_terminal:
            return say_error(400, "in_progress", "Request is still in progress")
        if run.status is not Status.SUCCEEDED:
            return say_error(422, *_error_of(run))
        return jsonify(self._result(run))

    def cancel(self, run_id: str, **_path: str) -> Response:
        return calls.cancel(
            self._provider,
            run_id,
            wording=self._wording,
            canceled=lambda _run: answers.with_status(jsonify(status="CANCELLATION_REQUESTED"), 202),
            finished=lambda _run: answers.with_status(jsonify(status="ALREADY_COMPLETED"), 400),
        )

    def show_keys(self) -> Response:
        x = _encode(self._key.public_key().public_bytes_raw())
        return jsonify(keys=[{"kty": "OKP", "crv": "Ed25519", "kid": "simulator", "use": "sig", "x": x}])

    # Words -----------------------------------------------------------------------------------------------

    def _accepted(self, run: Run, replayed: bool) -> Response:  # noqa: ARG002 - it knows no keys
        return jsonify(status="IN_QUEUE", queue_position=0, **self._links(run))

    def _links(self, run: Run) -> dict[str, object]:
        url = f"{self._provider.base_url}/{NAME}/{run.order.asked['app']}/requests/{run.id}"
        return {
            "request_id": run.id,
            "response_url": url,
            "status_url": f"{url}/status",
            "cancel_url": f"{url}/cancel",
        }

    def _describe(self, run: Run) -> dict[str, object]:
        shown: dict[str, object] = {**self._links(run), "status": _WORDS.get(run.status, "COMPLETED"), "logs": None}
        if run.status is Status.QUEUED:
            shown["queue_position"] = 0
        if run.status.is_terminal:
            shown["metrics"] = {"inference_time": run.duration_s}
        if run.status in (Status.FAILED, Status.CANCELED):
            shown["error_type"], shown["error"] = _error_of(run)
        return shown

    def _result(self, run: Run) -> dict[str, object]:
        files = [
            {
                "url": file["url"],
                "content_type": file["content_type"],
                "file_name": str(file["url"]).split("?")[0].rsplit("/", 1)[-1],
                "file_size": file["size"],
            }
            for file in self._provider.files.describe(run, base_url=self._provider.base_url)
        ]
        output = run.outcome.output if run.outcome else None
        return {**(output or {}), "files": files}

    def tell(self, run: Run, status: Status) -> Delivery | None:
        """The end of a request; nothing before it."""
        if run.order.callback_url is None or not status.is_terminal:
            return None
        body: dict[str, object] = {"request_id": run.id, "gateway_request_id": run.id}
        if status is not Status.SUCCEEDED:
            code, message = _error_of(run)
            body |= {"status": "ERROR", "error": message, "payload": {"detail": [{"msg": message, "type": code}]}}
        elif run.order.input.get("payload_error"):
            body |= {"status": "OK", "payload": None, "payload_error": "the result is no JSON"}
        else:
            body |= {"status": "OK", "payload": self._result(run)}
        raw, url = json.dumps(body).encode(), run.order.callback_url
        return Delivery(run.id, run.id, status.value, url, raw, seal=self._seal, habits=_TEN_IN_TWO_HOURS)


def _error_of(run: Run) -> tuple[str, str]:
    """The error_type and the words of a run that did not succeed."""
    if run.status is Status.CANCELED:
        return "request_cancelled", "the request was cancelled"
    error = (run.outcome.error if run.outcome else None) or {}
    return error.get("code", "internal"), error.get("message", "it failed")


def _make_key(text: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(text.encode()).digest())


def _encode(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode().rstrip("=")
