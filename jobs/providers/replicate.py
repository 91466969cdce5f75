"""Replicate: predictions, and trainings with ``input.kind = "training"``.

The input is the body of Replicate's own request: ``{"version", "input"}``, ``{"model": "owner/name", "input"}`` or
``{"deployment": "owner/name", "input"}``; a training has ``{"kind": "training", "model", "version", "destination",
"input"}``.

What is known, and how well:

- Routes, ``Bearer``, the fields of a prediction, cancel: seen leaving the vendor's client (replicate 1.0.7), whose own
  words end at ``canceled``; trainings: vendor source.
- ``aborted`` (its own deadline passed before it started; not charged on public models), the webhook being the
  prediction itself, signed by Standard Webhooks and last retried about a minute after the end, output deleted one hour
  after the end, 600 submits a minute: vendor documentation.
- No idempotency key: none found. Its list names neither our callback URL nor anything else of ours, so a submit
  whose answer is lost is found by the token in its callback URL, or by a person.
- A callback without https is refused: guessed, so Replicate is told none on a machine without a public address, and
  polls bring the job home.
- ``urls.stream`` with the events ``output`` (plain text), ``error`` and ``done``: vendor documentation. It is asked for
  by ``"stream": true`` in the input, a field that is deprecated there but still taken, and refused (422) where the
  model cannot stream: only then do we listen. That the link needs no key, and stands on another host: vendor source
  (its JavaScript client), so our key is not sent there. Nothing says that ``Last-Event-ID`` is honoured, so a stream
  that broke is taken to begin at its beginning; that it does so is guessed.
- A cancel that comes too late: guessed to answer 4xx or the prediction as it ended; either is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.errors import Transient, Unusable
from jobs.core.observations import Json
from jobs.core.states import JobState
from jobs.net.event_streams import EventStreams
from jobs.net.http import HttpClient
from jobs.providers import answers
from jobs.providers.calls import Calls, about, accepted_id, credential_of, dump, is_ended, name_path, path_segment
from jobs.providers.links import urls_in
from jobs.providers.listening import BROKE_OFF, Listener, text_of
from jobs.providers.port import (
    AlreadyFinished,
    Capabilities,
    Gone,
    OutputDelta,
    Refused,
    Report,
    SubmitRequest,
    WebhookReport,
)

STATES: Mapping[str, JobState] = {
    "starting": JobState.PENDING,
    "processing": JobState.RUNNING,
    "succeeded": JobState.SUCCEEDED,
    "failed": JobState.FAILED,
    "canceled": JobState.CANCELED,
    "aborted": JobState.CANCELED,
}

_KEPT_FOR = timedelta(hours=1)
CAPABILITIES = Capabilities(address_field="kind", lists_artifacts=True, result_ttl=_KEPT_FOR)

_EVENTS = ("start", "completed")
_TOO_LATE = frozenset({400, 409, 422})
_TRAINING = "training"


class ReplicateProvider:
    """One account at Replicate."""

    capabilities = CAPABILITIES
    resumes_output = False

    def __init__(
        self, config: ProviderConfig, client: HttpClient, clock: Clock, streams: EventStreams | None = None
    ) -> None:
        """Dials nobody yet."""
        headers = {"Authorization": f"Bearer {credential_of(config)}"}
        self._calls = Calls(client, clock, config.base_url.rstrip("/"), headers)
        self._listener = Listener.of(config, streams or EventStreams(), clock=clock, headers=headers)

    def submit(self, request: SubmitRequest) -> Report:
        """See the port."""
        path, body = _order(request.input)
        told = callback_fields(request.callback_url, provider_url=self._calls.url)
        prediction = self._calls.submit(path, body=dump({**body, **told}))
        report = _report({**prediction, "id": accepted_id(prediction, "id")})
        return replace(report, state=None, error=None) if is_ended(report) else report

    def find(self, *, idempotency_key: str, token: str) -> tuple[Report, ...]:  # noqa: ARG002 - the port's shape
        """Nothing: its list shows nothing of ours to look for."""
        return ()

    def status(self, provider_job_id: str) -> Report:
        """See the port."""
        path, run = _place(provider_job_id)
        return _report(about(self._calls.read(path), run=run))

    def cancel(self, provider_job_id: str) -> Report | None:
        """See the port."""
        path, run = _place(provider_job_id)
        answer = self._calls.ask("POST", f"{path}/cancel")
        if answer.status in _TOO_LATE:
            raise AlreadyFinished(answers.describe(answer, "too late"))
        return _report(about(self._calls.object_of(answer), run=run))

    def can_follow(self, inputs: Mapping[str, Json]) -> bool:
        """See the port."""
        return inputs.get("stream") is True and inputs.get("kind") != _TRAINING

    def follow_output(self, provider_job_id: str, *, after: str | None = None) -> Iterator[OutputDelta]:  # noqa: ARG002
        """See the port. Where to listen is what the prediction says."""
        path, run = _place(provider_job_id)
        urls = about(self._calls.read(path), run=run).get("urls")
        link = urls.get("stream") if isinstance(urls, Mapping) else None
        if not isinstance(link, str):
            raise Gone("the prediction names no stream")
        for message in self._listener.hear(link):
            if message.event == "done":
                return
            if message.event == "output" and message.data:
                yield OutputDelta(text_of(message.data))
        raise Transient(BROKE_OFF)

    def read_webhook(self, body: Json, headers: Mapping[str, str]) -> WebhookReport:  # noqa: ARG002 - the port's shape
        """The body is the prediction itself."""
        if not isinstance(body, Mapping):
            raise Unusable("an event is a JSON object")
        if answers.id_of(body.get("id")) is None or "status" not in body:
            return WebhookReport(None, ignored_because="is no prediction")
        return WebhookReport(_report(body))


def callback_fields(callback_url: str, *, provider_url: str) -> dict[str, Json]:
    """Where a submit asks to be called back; nothing where Replicate itself would be given an address without https."""
    if provider_url.startswith("https://") and not callback_url.startswith("https://"):
        return {}
    return {"webhook": callback_url, "webhook_events_filter": _EVENTS}


def _order(inputs: Mapping[str, Json]) -> tuple[str, dict[str, Json]]:
    """Where a submit goes, and its body.

    Raises:
        Refused: It names nothing to run. Nothing was sent.
    """
    body = dict(inputs)
    kind = body.pop("kind", None)
    if kind == _TRAINING:
        model, version = name_path(body.pop("model", None)), name_path(body.pop("version", None))
        if model is not None and version is not None:
            return f"/v1/models/{model}/versions/{version}/trainings", body
        raise Refused("a training needs input.model (owner/name) and input.version", code="invalid_input")
    if kind not in (None, "prediction"):
        raise Refused("input.kind must be prediction or training", code="invalid_input")
    for field, place in (("deployment", "deployments"), ("model", "models")):
        if (name := name_path(body.pop(field, None))) is not None:
            return f"/v1/{place}/{name}/predictions", body
    if isinstance(body.get("version"), str):
        return "/v1/predictions", body
    raise Refused("input must name a version, a model or a deployment", code="invalid_input")


def _place(address: str) -> tuple[str, str]:
    kind, _, run = address.rpartition("/")
    return f"/v1/{'trainings' if kind == _TRAINING else 'predictions'}/{path_segment(run)}", run


def _report(prediction: answers.Body) -> Report:
    state, unknown = answers.status_of(prediction, "status", states=STATES)
    output = prediction.get("output")
    ended = state in (JobState.FAILED, JobState.CANCELED)
    return Report(
        provider_job_id=answers.id_of(prediction.get("id")),
        state=state,
        unknown_status=unknown,
        output=output,
        error=answers.error_of(prediction.get("error")) if ended else None,
        links=urls_in(output, expires_at=_deleted_at(prediction)) if state is JobState.SUCCEEDED else (),
    )


def _deleted_at(prediction: answers.Body) -> str | None:
    try:
        return (datetime.fromisoformat(prediction["completed_at"]) + _KEPT_FOR).isoformat()
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
