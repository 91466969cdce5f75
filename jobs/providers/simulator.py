"""Homing's own simulated provider, over HTTP.

Its dialect: ``POST /jobs``, ``GET /jobs/{id}``, ``GET /jobs?reference=`` or ``?idempotency_key=``,
``POST /jobs/{id}/cancel``; statuses ``queued processing succeeded failed canceled``. The runs of its model
``llm-stream`` can be listened to: ``GET /jobs/{id}/stream``. What may be assumed of it is said in its entry, so that
every class of provider can be tried.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from urllib.parse import quote

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.errors import Transient, UnknownOutcome, Unusable
from jobs.core.observations import JobError, Json
from jobs.core.states import JobState, is_terminal
from jobs.net.event_streams import EventStreams
from jobs.net.http import Answer, HttpClient, NoAnswer
from jobs.providers import answers
from jobs.providers.listening import BROKE_OFF, Listener, object_of, text_of
from jobs.providers.port import (
    AlreadyFinished,
    Capabilities,
    Gone,
    KeyReused,
    KeyUse,
    OutputDelta,
    Report,
    SubmitRequest,
    WebhookReport,
)

STATES: Mapping[str, JobState] = {
    "queued": JobState.PENDING,
    "processing": JobState.RUNNING,
    "succeeded": JobState.SUCCEEDED,
    "failed": JobState.FAILED,
    "canceled": JobState.CANCELED,
}

_STREAMING_MODEL = "llm-stream"

_NO_REASON = JobError("provider_error", "the provider named no reason")


class SimulatorProvider:
    """One account at a simulator."""

    def __init__(
        self, config: ProviderConfig, client: HttpClient, clock: Clock, streams: EventStreams | None = None
    ) -> None:
        """Dials nobody yet."""
        self._client = client
        self._clock = clock
        self._url = config.base_url.rstrip("/")
        token = config.api_token.get_secret_value() if config.api_token else None
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._listener = Listener.of(config, streams or EventStreams(), clock=clock, headers=self._headers)
        self._resumes_output = config.stream_resume
        self._capabilities = Capabilities(
            keys=KeyUse(config.idempotency),
            key_window=config.idempotency_window,
            search=config.search,
            lists_artifacts=True,
        )

    @property
    def capabilities(self) -> Capabilities:
        """What its entry says may be assumed."""
        return self._capabilities

    def submit(self, request: SubmitRequest) -> Report:
        """See the port. ``input.model`` becomes ``model``, the rest stays ``input``."""
        inputs = dict(request.input)
        body = {
            "model": inputs.pop("model", None),
            "input": inputs,
            "callback_url": request.callback_url,
            "reference": request.token,
        }
        answer = self._client.request(
            "POST",
            f"{self._url}/jobs",
            headers={
                **self._headers,
                "Content-Type": "application/json",
                "Idempotency-Key": request.idempotency_key,
            },
            body=json.dumps(body).encode(),
            fresh=True,
        )
        return self._accepted(answer)

    def _accepted(self, answer: Answer) -> Report:
        if answer.status == 422 and answers.code_of(answer) == "idempotency_key_reused":
            raise KeyReused("the provider has seen this key before and does not say which run it began")
        if not answer.is_success:
            raise answers.submit_fault(answer, now=self._clock.now())
        try:
            body = answers.read_object(answer)
        except Transient as error:
            raise UnknownOutcome(error.detail) from error
        if answers.id_of(body.get("id")) is None:
            raise UnknownOutcome(answers.describe(answer, "accepted without an id"))
        report = _report(body)
        # A replay names the run and its status, not its result: an end is only believed where the result comes along.
        ended = report.state is not None and is_terminal(report.state)
        return replace(report, state=None, error=None) if ended else report

    def find(self, *, idempotency_key: str, token: str) -> tuple[Report, ...]:
        """See the port."""
        return self._search(reference=token) or self._search(idempotency_key=idempotency_key)

    def _search(self, **query: str) -> tuple[Report, ...]:
        answer = self._ask("GET", "/jobs", params=query)
        if not answer.is_success:
            raise answers.delay(answer, now=self._clock.now())
        found = answers.read_object(answer).get("jobs")
        if not isinstance(found, list) or not all(_is_run(item) for item in found):
            raise Transient(answers.describe(answer, "not a list of jobs"))
        return tuple(_report(item) for item in found)

    def status(self, provider_job_id: str) -> Report:
        """See the port."""
        answer = self._ask("GET", _path(provider_job_id))
        if not answer.is_success:
            raise answers.read_fault(answer, now=self._clock.now())
        return _report(answers.read_run(answer, run=provider_job_id))

    def cancel(self, provider_job_id: str) -> Report | None:
        """See the port."""
        answer = self._ask("POST", f"{_path(provider_job_id)}/cancel")
        if answer.status == 409:
            raise AlreadyFinished(answers.describe(answer, "too late"))
        if not answer.is_success:
            raise answers.read_fault(answer, now=self._clock.now())
        return _report(answers.read_run(answer, run=provider_job_id))

    def _ask(self, method: str, path: str, *, params: Mapping[str, str] | None = None) -> Answer:
        """A request that may be repeated: an answer that did not come is only a delay."""
        try:
            return self._client.request(method, self._url + path, headers=self._headers, params=params)
        except NoAnswer as error:
            raise Transient(error.detail) from error

    @property
    def resumes_output(self) -> bool:
        """What its entry says."""
        return self._resumes_output

    def can_follow(self, inputs: Mapping[str, Json]) -> bool:
        """See the port."""
        return inputs.get("model") == _STREAMING_MODEL

    def follow_output(self, provider_job_id: str, *, after: str | None = None) -> Iterator[OutputDelta]:
        """See the port."""
        place = after if self._resumes_output else None
        for message in self._listener.hear(f"{self._url}{_path(provider_job_id)}/stream", after=place):
            if message.event == "done":
                return
            if message.event == "output" and (text := text_of(object_of(message).get("text"))):
                yield OutputDelta(text, message.id if self._resumes_output else None)
        raise Transient(BROKE_OFF)

    def read_webhook(self, body: Json, headers: Mapping[str, str]) -> WebhookReport:  # noqa: ARG002 - the port's shape
        """See the port."""
        if not isinstance(body, Mapping):
            raise Unusable("an event is a JSON object")
        delivery_id = answers.id_of(body.get("id"))
        if body.get("job") is None:
            return WebhookReport(None, delivery_id, ignored_because="names no job")
        if answers.id_of(body["job"]) is None:
            raise Unusable("the job's id is not a text of 1 to 255 characters")
        if "status" not in body:
            return WebhookReport(None, delivery_id, ignored_because="names no status")
        if body.get("livemode") is False:
            return WebhookReport(None, delivery_id, ignored_because="sent in test mode")
        return WebhookReport(_report({**body, "id": body["job"]}), delivery_id)


def _path(provider_job_id: str) -> str:
    if provider_job_id in (".", ".."):
        raise Gone("no run has such an id")  # a path that would be folded away
    return f"/jobs/{quote(provider_job_id, safe='')}"


def _is_run(item: object) -> bool:
    return isinstance(item, Mapping) and answers.id_of(item.get("id")) is not None


def _report(body: answers.Body) -> Report:
    state, unknown = answers.status_of(body, "status", states=STATES)
    error = answers.error_of(body.get("error"))
    return Report(
        provider_job_id=answers.id_of(body.get("id")),
        state=state,
        unknown_status=unknown,
        progress=answers.progress_of(body.get("progress")),
        output=body.get("output"),
        error=(error or _NO_REASON) if state is JobState.FAILED else None,
        links=answers.links_of(body.get("artifacts")),
        cost=answers.cost_of(body.get("cost")),
    )
