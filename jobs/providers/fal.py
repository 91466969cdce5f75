"""fal's queue: ``input.model`` is the endpoint (``fal-ai/flux/dev``), the rest of the input is its body.

What is known, and how well:

- Routes, ``Authorization: Key``, the statuses, ``error`` and ``error_type`` beside ``COMPLETED``, a status path without
  the endpoint's subpath: seen leaving the vendor's client (fal-client 1.0.3), or in its source.
- ``COMPLETED`` only means that nothing more happens: with ``error`` it is a failure, without it the result is still to
  be fetched. The webhook says ``OK`` or ``ERROR``, and ``payload_error`` where the result could not be put into it.
  Webhooks: one per request, ten tries in two hours, a failed runner may run a request up to ten times; results kept
  30 days: vendor documentation.
- Ed25519 signatures under a public key set: vendor documentation; its address and the exact layout: third parties.
- No idempotency key and no list: none found. A submit whose answer is lost is found by the token in its callback URL,
  or by a person.
- Guessed: a cancel answers 202, or 400 ``ALREADY_COMPLETED``; a canceled request ends ``COMPLETED`` with an
  ``error_type`` that says so; the result of a request the model refused is answered 400 or 422.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlencode

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.errors import Transient, Unusable
from jobs.core.observations import JobError, Json, Progress
from jobs.core.states import JobState
from jobs.net.http import HttpClient
from jobs.providers import answers
from jobs.providers.calls import Calls, accepted_id, credential_of, dump, name_path, path_segment
from jobs.providers.links import files_in
from jobs.providers.port import AlreadyFinished, Capabilities, Gone, Refused, Report, SubmitRequest, WebhookReport

#: ``COMPLETED`` is not among them: whether it is a success is decided by what stands beside it.
STATES: Mapping[str, JobState] = {"in_queue": JobState.PENDING, "in_progress": JobState.RUNNING}
COMPLETED = "completed"
WEBHOOK_STATES: Mapping[str, JobState] = {"ok": JobState.SUCCEEDED, "error": JobState.FAILED}

CAPABILITIES = Capabilities(address_field="model", lists_artifacts=True)

#: Endpoints under these have one segment more before their subpath.
_NAMESPACES = ("workflows", "comfy")
_TOO_LATE = frozenset({400, 409})
_MODEL_REFUSED = frozenset({400, 422})
_CANCELED = re.compile(r"cancell?ed", re.IGNORECASE)


class FalProvider:
    """One account at fal."""

    capabilities = CAPABILITIES

    def __init__(self, config: ProviderConfig, client: HttpClient, clock: Clock) -> None:
        """Dials nobody yet."""
        headers = {"Authorization": f"Key {credential_of(config)}"}
        self._calls = Calls(client, clock, config.base_url.rstrip("/"), headers)
        self._clock = clock

    def submit(self, request: SubmitRequest) -> Report:
        """See the port."""
        body = dict(request.input)
        model = name_path(body.pop("model", None))
        if model is None or "/" not in model:
            raise Refused("input.model must be an endpoint such as fal-ai/flux/dev", code="invalid_input")
        query = urlencode({"fal_webhook": request.callback_url})
        answer = self._calls.submit(f"/{model}?{query}", body=dump(body))
        return Report(accepted_id(answer, "request_id"), JobState.PENDING)

    def find(self, *, idempotency_key: str, token: str) -> tuple[Report, ...]:  # noqa: ARG002 - the port's shape
        """Nothing: there is no list to look in."""
        return ()

    def status(self, provider_job_id: str) -> Report:
        """See the port. A completed request is read twice: its status, then its result."""
        path, run = _place(provider_job_id)
        body = _about(self._calls.read(f"{path}/status"), run=run)
        word = body.get("status")
        if not isinstance(word, str) or word.strip().lower() != COMPLETED:
            state, unknown = answers.status_of(body, "status", states=STATES)
            return Report(run, state, unknown, progress=_position(body))
        if body.get("error") or body.get("error_type"):
            return _failure(run, body)
        return self._result(run, self._own_path(body.get("response_url")) or path)

    def _result(self, run: str, path: str) -> Report:
        answer = self._calls.ask("GET", path)
        if answer.status in _MODEL_REFUSED:
            message = answers.message_of(answer) or answers.describe(answer, "its result was answered")
            return Report(run, JobState.FAILED, error=JobError("provider_error", message))
        output = self._calls.object_of(answer)
        return Report(run, JobState.SUCCEEDED, output=output, links=files_in(output))

    def _own_path(self, url: object) -> str | None:
        """Where a reply sends us, if that is on the provider's own host: our credential goes nowhere else."""
        own = isinstance(url, str) and url.startswith(f"{self._calls.url}/")
        return str(url)[len(self._calls.url) :] if own else None

    def cancel(self, provider_job_id: str) -> Report | None:
        """See the port. It is a wish: how the request ends is read."""
        path, _run = _place(provider_job_id)
        answer = self._calls.ask("PUT", f"{path}/cancel")
        if answer.status in _TOO_LATE:
            raise AlreadyFinished(answers.describe(answer, "too late"))
        if not answer.is_success:
            raise answers.read_fault(answer, now=self._clock.now())
        return None

    def read_webhook(self, body: Json, headers: Mapping[str, str]) -> WebhookReport:  # noqa: ARG002 - the port's shape
        """See the port. A success without its result only says that there is one to fetch."""
        if not isinstance(body, Mapping):
            raise Unusable("an event is a JSON object")
        run = answers.id_of(body.get("request_id"))
        if run is None or "status" not in body:
            return WebhookReport(None, ignored_because="is no end of a request")
        state, unknown = answers.status_of(body, "status", states=WEBHOOK_STATES)
        if state is JobState.FAILED:
            return WebhookReport(_failure(run, body))
        payload = body.get("payload")
        if state is JobState.SUCCEEDED and payload is None:
            return WebhookReport(Report(run, state), is_hint=True)
        return WebhookReport(Report(run, state, unknown, output=payload, links=files_in(payload)))


def _place(address: str) -> tuple[str, str]:
    """Where a request is read, and its id.

    Raises:
        Gone: Its endpoint is not known, without which it cannot be found.
    """
    model, _, run = address.rpartition("/")
    parts = model.split("/")
    app = parts[: 3 if parts[0] in _NAMESPACES else 2]
    if len(app) < 2 or name_path(model) is None:
        raise Gone("a request is found by its endpoint and its id: input.model, or <endpoint>/<request id>")
    return f"/{'/'.join(app)}/requests/{path_segment(run)}", run


def _about(body: answers.Body, *, run: str) -> answers.Body:
    """A status answer that does not speak of another request; it names its own by id, by link, or not at all.

    Raises:
        Transient: It speaks of another, or of none and has no status.
    """
    named, link = body.get("request_id"), body.get("response_url")
    if named not in (None, run) or (isinstance(link, str) and run not in link):
        raise Transient(f"not an answer about request {run}")
    if named is None and link is None and "status" not in body:
        raise Transient("not an answer about a request")
    return body


def _position(body: answers.Body) -> Progress | None:
    position = answers.number_of(body.get("queue_position"))
    return None if position is None else Progress(message=f"position {position:.0f} in the queue")


def _failure(run: str, body: answers.Body) -> Report:
    """An end that is no success, with the words of the status, or of the webhook and its payload."""
    error, kind = answers.error_of(body.get("error")), body.get("error_type")
    code = kind[:100] if isinstance(kind, str) and kind else "provider_error"
    message = error.message if error else answers.detail_of(body.get("payload")) or code
    if _CANCELED.search(code):
        return Report(run, JobState.CANCELED, error=JobError(code, message))
    return Report(run, JobState.FAILED, error=JobError(code, message))
