"""HeyGen, API v3: avatar videos.

``input.endpoint`` names the route (``videos`` by default, or ``video-agents``), the rest of the input is its body.

What is known, and how well:

- ``X-Api-Key``; ``GET /v3/videos/{id}`` answers ``{"data": {id, status, video_url, failure_code, failure_message}}``;
  the submit answers ``{"data": {"video_id"}}``: vendor documentation (quick start of v3).
- Status words: vendor source (heygen-cli), but ``waiting``, which is recalled from v1.
- ``Idempotency-Key`` (``[A-Za-z0-9_:.-]``, up to 255 characters): a repeated key answers the first response for 24 h
  *even where the body differs*, and 409 ``request_in_progress`` while the first is at work: vendor documentation, for
  other v3 routes. That ``/v3/videos`` honours it too is assumed. Higgsfield has the contrary rule: there a changed body
  under a used key is a 422.
- ``callback_id`` comes back as ``event_data.callback_id``; ours is the attempt's token: vendor documentation.
- Registered webhooks are signed ``Heygen-Signature`` (HMAC-SHA256, hex, of the body alone, so a recording stays valid
  for ever) with ``event_id`` in the body: third party only. A per-job ``callback_url`` is not signed: vendor source
  (heygen-cli). It is sent only where the entry says ``webhook_scheme = "none"``.
- ``video_url`` is presigned and runs out; a new read brings a fresh one: vendor source. After how long: not known.
- ``DELETE /v3/videos/{id}`` removes a video: vendor source. Whether it also stops one at work, and what that costs, is
  not known.

An event is a hint: the status is read with our own key, which also brings the fresh link.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.errors import Transient, UnknownOutcome, Unusable
from jobs.core.observations import JobError, Json, Link
from jobs.core.states import JobState
from jobs.net.http import HttpClient
from jobs.providers import answers
from jobs.providers.calls import Calls, about, accepted_id, credential_of, dump, is_ended, path_segment, taken_endpoint
from jobs.providers.port import AlreadyFinished, Capabilities, KeyUse, Report, SubmitRequest, WebhookReport

STATES: Mapping[str, JobState] = {
    "pending": JobState.PENDING,
    "queued": JobState.PENDING,
    "waiting": JobState.PENDING,
    "processing": JobState.RUNNING,
    "completed": JobState.SUCCEEDED,
    "failed": JobState.FAILED,
}

# The words after the dot of an event's type; the kinds before it that speak of a video.
_OUTCOMES: Mapping[str, JobState] = {"success": JobState.SUCCEEDED, "fail": JobState.FAILED}
_VIDEO_EVENTS = ("avatar_video", "video_agent")
_ROUTES: Mapping[str, str] = {"videos": "/v3/videos", "video-agents": "/v3/video-agents"}
_UNSIGNED = "none"


class HeyGenProvider:
    """One account at HeyGen."""

    def __init__(self, config: ProviderConfig, client: HttpClient, clock: Clock) -> None:
        """Dials nobody yet."""
        self._calls = Calls(client, clock, config.base_url.rstrip("/"), {"X-Api-Key": credential_of(config)})
        self._calls_back = config.webhook_scheme == _UNSIGNED
        self._capabilities = Capabilities(
            keys=KeyUse.REPLAY,
            key_window=timedelta(hours=24),
            callback_per_request=self._calls_back,
            webhook_is_hint=True,
            lists_artifacts=True,
        )

    @property
    def capabilities(self) -> Capabilities:
        """Keys are honoured for 24 h; events are hints."""
        return self._capabilities

    def submit(self, request: SubmitRequest) -> Report:
        """See the port."""
        inputs = dict(request.input)
        route = _ROUTES[taken_endpoint(inputs, known=_ROUTES, default="videos")]
        inputs["callback_id"] = request.token
        if self._calls_back:
            inputs["callback_url"] = request.callback_url
        answer = self._calls.submit(route, body=dump(inputs), headers={"Idempotency-Key": request.idempotency_key})
        data = answer.get("data")
        if not isinstance(data, Mapping):
            raise UnknownOutcome("accepted without data")
        return Report(accepted_id(data, "video_id", "id"))

    def find(self, *, idempotency_key: str, token: str) -> tuple[Report, ...]:  # noqa: ARG002 - the port's shape
        """Nothing: the key is what finds a run."""
        return ()

    def status(self, provider_job_id: str) -> Report:
        """See the port."""
        data = self._calls.read(f"/v3/videos/{path_segment(provider_job_id)}").get("data")
        if not isinstance(data, Mapping):
            raise Transient("not an answer: it has no data")
        return _report(about(data, run=provider_job_id))

    def cancel(self, provider_job_id: str) -> Report | None:
        """See the port. The video is read first: a DELETE that comes after its end would destroy its result."""
        if is_ended(self.status(provider_job_id)):
            raise AlreadyFinished("the video has ended; a DELETE now would erase it")
        self._calls.remove(f"/v3/videos/{path_segment(provider_job_id)}")
        return Report(provider_job_id, JobState.CANCELED)

    def read_webhook(self, body: Json, headers: Mapping[str, str]) -> WebhookReport:  # noqa: ARG002 - the port's shape
        """See the port."""
        if not isinstance(body, Mapping):
            raise Unusable("an event is a JSON object")
        delivery_id = answers.id_of(body.get("event_id"))
        kind, _, outcome = str(body.get("event_type") or "").partition(".")
        data = body.get("event_data")
        if kind not in _VIDEO_EVENTS or not isinstance(data, Mapping):
            return WebhookReport(None, delivery_id, ignored_because="not about a video")
        run, token = answers.id_of(data.get("video_id")), answers.id_of(data.get("callback_id"))
        if run is None and token is None:
            return WebhookReport(None, delivery_id, ignored_because="names no video")
        state = _OUTCOMES.get(outcome)
        unknown = None if state else (outcome or "no outcome")[:100]
        error = _error(data, message="msg") if state is JobState.FAILED else None
        return WebhookReport(Report(run, state, unknown, error=error), delivery_id, token=token)


def _report(data: answers.Body) -> Report:
    state, unknown = answers.status_of(data, "status", states=STATES)
    url = data.get("video_url")
    done = state is JobState.SUCCEEDED
    return Report(
        provider_job_id=answers.id_of(data.get("id")),
        state=state,
        unknown_status=unknown,
        output=dict(data) if done else None,
        error=_error(data, message="failure_message") if state is JobState.FAILED else None,
        links=(Link(url, "video/mp4"),) if done and isinstance(url, str) else (),
    )


def _error(data: answers.Body, *, message: str) -> JobError | None:
    return answers.error_of({"code": data.get("failure_code"), "message": data.get(message)})
