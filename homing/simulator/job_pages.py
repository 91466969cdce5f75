"""The provider's own calls: submit, read, search, cancel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TypeAlias
from urllib.parse import urlsplit

from flask import Blueprint, Response, jsonify, request

from homing.simulator import answers, calls
from homing.simulator.models import MODELS
from homing.simulator.provider import Provider
from homing.simulator.run import Order, Run

View: TypeAlias = Callable[..., Response]


def create_job_pages(provider: Provider) -> Blueprint:
    """The routes under `/jobs`."""
    pages = Blueprint("jobs", __name__)
    guarded = _require_token(provider.config.api_token)
    views: tuple[tuple[str, str, Callable[..., Response]], ...] = (
        ("POST", "/jobs", _submit),
        ("GET", "/jobs", _search),
        ("GET", "/jobs/<run_id>", _read),
        ("POST", "/jobs/<run_id>/cancel", _cancel),
    )
    for method, rule, view in views:
        pages.add_url_rule(rule, view.__name__, guarded(_bind(view, provider)), methods=[method])
    return pages


def _bind(view: View, provider: Provider) -> View:
    @wraps(view)
    def bound(**path: str) -> Response:
        return view(provider, **path)

    return bound


def _require_token(token: str | None) -> Callable[[View], View]:
    expected = None if token is None else f"Bearer {token}"

    def guard(view: View) -> View:
        @wraps(view)
        def guarded(**path: str) -> Response:
            if expected is not None and request.headers.get("Authorization") != expected:
                return answers.error(401, "unauthorized", "a bearer token is required")
            return view(**path)

        return guarded

    return guard


# Submit --------------------------------------------------------------------------------------------------


def _submit(provider: Provider) -> Response:
    body = request.get_json(force=True, silent=True)
    fault = _find_body_fault(body)
    if fault is not None or not isinstance(body, dict):
        return answers.error(422, "invalid_request", fault or "the body must be a JSON object")
    order = Order(
        model=body["model"],
        input=body["input"],
        callback_url=body.get("callback_url"),
        reference=body.get("reference"),
        key=request.headers.get("Idempotency-Key"),
    )
    return calls.submit(provider, order, wording=_wording(provider))


def _accepted(run: Run, replayed: bool) -> Response:
    answer = jsonify(id=run.id, status=run.status.value if replayed else "queued")
    answer.status_code = 200 if replayed else 201
    return answer


def _wording(provider: Provider) -> calls.Wording:
    return calls.Wording(None, accepted=_accepted, describe=provider.describe, error=answers.error)


def _find_body_fault(body: object) -> str | None:
    if not isinstance(body, Mapping):
        return "the body must be a JSON object"
    if body.get("model") not in list(MODELS):
        return f"model must be one of {', '.join(MODELS)}"
    if not isinstance(body.get("input"), Mapping):
        return "input must be an object"
    if not isinstance(body.get("reference"), str | None):
        return "reference must be a text"
    url = body.get("callback_url")
    if url is not None and not _is_web_address(url):
        return "callback_url must be an http or https URL"
    return None


def _is_web_address(url: object) -> bool:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
    except ValueError:
        return False
    return parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)


# Read, search, cancel ------------------------------------------------------------------------------------


def _read(provider: Provider, run_id: str) -> Response:
    return calls.read(provider, run_id, wording=_wording(provider))


def _search(provider: Provider) -> Response:
    if not provider.config.search:
        return answers.error(501, "not_supported", "this account cannot search its jobs")
    reference, key = request.args.get("reference"), request.args.get("idempotency_key")
    if reference is None and key is None:
        return answers.error(422, "invalid_request", "search by reference or by idempotency_key")
    until = provider.clock.now() - provider.config.search_lag
    found = provider.runs.search(reference=reference, key=key, until=until)
    provider.ledger.record_search(reference=reference, key=key, found=len(found))
    return jsonify(jobs=[provider.describe(run) for run in found])


def _cancel(provider: Provider, run_id: str) -> Response:
    return calls.cancel(
        provider,
        run_id,
        wording=_wording(provider),
        canceled=lambda run: jsonify(provider.describe(run)),
        finished=lambda run: answers.error(409, "job_finished", "the job has ended", job=provider.describe(run)),
    )
