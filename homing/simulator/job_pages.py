"""The provider's own calls: submit, read, search, cancel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TypeAlias
from urllib.parse import urlsplit

from flask import Blueprint, Response, jsonify, request

from homing.simulator import answers
from homing.simulator.desk import Decision, Verdict
from homing.simulator.faults import Fault
from homing.simulator.models import MODELS
from homing.simulator.provider import Provider
from homing.simulator.run import Order, Run

#: How long a hanging read is held, in seconds: past a poller's patience, short of a demo's.
HANG_S = 4.0

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
    decision = provider.desk.submit(order)
    if decision.verdict is Verdict.ACCEPTED and decision.run is not None:
        _set_going(provider, decision.run)
    answer = _answer_submit(decision)
    lost = decision.fault is Fault.LOST_ANSWER
    provider.ledger.record_submit(
        key=order.key,
        reference=order.reference,
        run_id=None if decision.run is None else decision.run.id,
        answer=None if lost else answer.status_code,
        fault=decision.fault,
    )
    return answers.cut_connection(request.environ) if lost else answer


def _set_going(provider: Provider, run: Run) -> None:
    if run.faults.webhook is Fault.EARLY:
        provider.life.complete_now(run)
    else:
        provider.life.enqueue(run)


def _answer_submit(decision: Decision) -> Response:
    run = decision.run
    if decision.verdict is Verdict.KEY_REUSED or run is None:
        if decision.fault is None:
            return answers.error(422, "idempotency_key_reused", "this Idempotency-Key was used before")
        status = 429 if decision.fault is Fault.SUBMIT_429 else 503
        return answers.busy(status, "busy", retry_after=status == 429)
    replayed = decision.verdict is Verdict.REPLAYED
    answer = jsonify(id=run.id, status=run.status.value if replayed else "queued")
    answer.status_code = 200 if replayed else 201
    return answer


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
    run = provider.runs.find(run_id)
    if run is None:
        provider.ledger.record_read(run_id=run_id, answer=404)
        return answers.error(404, "not_found", "there is no such job")
    earlier = provider.runs.count_read(run)
    fault = run.faults.status if earlier < run.faults.times else None
    if fault is Fault.STATUS_HANG:
        return _hang(provider, run)
    answer = _answer_read(provider, run, fault=fault)
    provider.ledger.record_read(run_id=run.id, answer=answer.status_code, fault=fault)
    return answer


def _answer_read(provider: Provider, run: Run, *, fault: Fault | None) -> Response:
    match fault:
        case Fault.STATUS_5XX:
            status = answers.SERVER_ERRORS[int(run.faults.jitter * len(answers.SERVER_ERRORS))]
            return answers.busy(status, "internal", retry_after=False)
        case Fault.STATUS_429:
            return answers.busy(429, "rate_limited", retry_after=True)
        case Fault.STATUS_HTML:
            return answers.gateway_page()
        case Fault.STATUS_UNKNOWN:
            return answers.with_unknown_word(provider.describe(run), run.faults.jitter)
        case _:
            return jsonify(provider.describe(run))


def _hang(provider: Provider, run: Run) -> Response:
    provider.ledger.record_read(run_id=run.id, answer=None, fault=Fault.STATUS_HANG)
    provider.closing.wait(HANG_S * provider.config.time_scale)
    return answers.cut_connection(request.environ)


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
    run = provider.runs.find(run_id)
    if run is None:
        answer = answers.error(404, "not_found", "there is no such job")
    elif provider.life.cancel(run):
        answer = jsonify(provider.describe(run))
    else:
        answer = answers.error(409, "job_finished", "the job has ended", job=provider.describe(run))
    provider.ledger.record_cancel(run_id=run_id, answer=answer.status_code)
    return answer
