"""The provider's own calls: submit, read, listen, search, cancel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import TypeAlias
from urllib.parse import urlsplit

from flask import Blueprint, Response, jsonify, request

from homing.simulator import answers, calls, stream_pages
from homing.simulator.models import MODELS
from homing.simulator.provider import Provider
from homing.simulator.run import Order, Run
from homing.simulator.streams import Piece

View: TypeAlias = Callable[..., Response]


def create_job_pages(provider: Provider) -> Blueprint:
    """The routes under `/jobs`."""
    pages = Blueprint("jobs", __name__)
    guarded = _require_token(provider.config.api_token)
    views: tuple[tuple[str, str, Callable[..., Response]], ...] = (
        ("POST", "/jobs", _submit),
        ("GET", "/jobs", _search),
        ("GET", "/jobs/<run_id>", _read),
        ("GET", "/jobs/<run_id>/stream", _listen),
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


# Read, listen, search, cancel ----------------------------------------------------------------------------


def _read(provider: Provider, run_id: str) -> Response:
    return calls.read(provider, run_id, wording=_wording(provider))


def _listen(provider: Provider, run_id: str) -> Response:
    """From after `?after=`, else after `Last-Event-ID`: a number is an event's id."""
    resumes = provider.config.stream_resume
    place = request.args.get("after", request.headers.get("Last-Event-ID"))
    after = stream_pages.read_place(place) if resumes else 0
    return stream_pages.listen(
        provider,
        run_id,
        wording=_wording(provider),
        write=lambda run, told: _write(run, told, after=after or 0, with_ids=resumes),
        after=after,
    )


def _write(run: Run, told: Iterator[Piece | None], *, after: int, with_ids: bool) -> Iterator[str]:
    last = after
    for piece in told:
        if piece is None:
            yield stream_pages.COMMENT
        else:
            last = piece.number
            yield _event("output", {"text": piece.text}, number=last if with_ids else None)
    if run.outcome and run.outcome.error:
        yield _event("error", run.outcome.error, number=None)
    yield _event("done", {"status": run.status.value}, number=last + 1 if with_ids else None)


def _event(name: str, data: Mapping[str, str], *, number: int | None) -> str:
    event_id = None if number is None else str(number)
    return stream_pages.event(name, json.dumps(data, ensure_ascii=False), event_id=event_id)


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
