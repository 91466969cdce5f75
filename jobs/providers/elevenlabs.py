"""ElevenLabs: transcripts (speech to text) and dubbing.

``input.endpoint`` is ``speech-to-text`` (by default) or ``dubbing``; the rest of the input are the form's fields. Files
are named by URL (``cloud_storage_url``, ``source_url``); they are not uploaded. A dubbing's run is called
``dubbing/<id>`` here, because its status lies elsewhere.

What is known, and how well:

- ``xi-api-key``, paths, form fields, and that ``webhook=true`` answers ``{"request_id", "transcription_id"}``: vendor
  source (elevenlabs 2.78.0).
- ``ElevenLabs-Signature: t=,v0=`` over the body, 30 minutes of tolerance, no id for a delivery: vendor source. Webhooks
  go to URLs of the workspace; transcripts are told *once*, retries are off by default: vendor documentation. So they
  are polled like everything else.
- The event's ``type``, ``data.request_id``, ``data.transcription``, ``data.webhook_metadata``: vendor documentation.
  ``transcription.transcription_id`` and ``data.error``: third party. Our token travels in ``webhook_metadata``.
- ``GET /v1/speech-to-text/transcripts/{id}`` answers the transcript: vendor source. Before it is ready: not known. So a
  404 is no news, and an unknown id only ends at the job's deadline.
- Dubbing's words ``dubbed`` and ``failed``: recalled, the vendor types them as any text. Its audio is fetched with the
  API key, from ElevenLabs itself.
- ``DELETE`` removes a run: vendor source. Whether it stops one at work: not known. No idempotency key: none found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from urllib3.filepost import encode_multipart_formdata

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.errors import Transient, Unusable
from jobs.core.observations import JobError, Json, Link
from jobs.core.states import JobState
from jobs.net.http import HttpClient
from jobs.providers import answers
from jobs.providers.calls import Calls, about, accepted_id, credential_of, is_ended, path_segment, taken_endpoint
from jobs.providers.port import AlreadyFinished, Capabilities, Gone, Refused, Report, SubmitRequest, WebhookReport

DUBBING_STATES: Mapping[str, JobState] = {
    "dubbing": JobState.RUNNING,
    "dubbed": JobState.SUCCEEDED,
    "failed": JobState.FAILED,
}

CAPABILITIES = Capabilities(callback_per_request=False)

SPEECH, DUBBING = "speech-to-text", "dubbing"
#: The field of ``webhook_metadata`` that carries our token.
TOKEN_FIELD = "homing_token"  # noqa: S105 - a name
_DUBBING_PREFIX = f"{DUBBING}/"
_EVENTS = "speech_to_text"


class ElevenLabsProvider:
    """One workspace at ElevenLabs."""

    capabilities = CAPABILITIES

    def __init__(self, config: ProviderConfig, client: HttpClient, clock: Clock) -> None:
        """Dials nobody yet."""
        self._url = config.base_url.rstrip("/")
        self._headers = {"xi-api-key": credential_of(config)}
        self._calls = Calls(client, clock, self._url, self._headers)

    @property
    def file_headers(self) -> Mapping[str, str]:
        """Dubbings are given away against the key only."""
        return self._headers

    def submit(self, request: SubmitRequest) -> Report:
        """See the port."""
        inputs = dict(request.input)
        endpoint = taken_endpoint(inputs, known={SPEECH: None, DUBBING: None}, default=SPEECH)
        if endpoint == SPEECH:
            own = inputs.get("webhook_metadata")
            metadata = {**(own if isinstance(own, Mapping) else {}), TOKEN_FIELD: request.token}
            inputs |= {"webhook": True, "webhook_metadata": metadata}
        # The boundary is the same on every try of an attempt, and so are the bytes.
        body, content_type = encode_multipart_formdata(list(_form(inputs)), boundary=f"homing{request.token}")
        answer = self._calls.submit(f"/v1/{endpoint}", body=body, content_type=content_type)
        if endpoint == DUBBING:
            return Report(_DUBBING_PREFIX + accepted_id(answer, "dubbing_id"))
        return Report(accepted_id(answer, "transcription_id"))

    def find(self, *, idempotency_key: str, token: str) -> tuple[Report, ...]:  # noqa: ARG002 - the port's shape
        """Nothing: no list tells our token."""
        return ()

    def status(self, provider_job_id: str) -> Report:
        """See the port."""
        if provider_job_id.startswith(_DUBBING_PREFIX):
            run = provider_job_id.removeprefix(_DUBBING_PREFIX)
            dubbing = self._calls.read(f"/v1/dubbing/{path_segment(run)}")
            return self._dubbing(about(dubbing, run=run, name="dubbing_id"))
        path = f"/v1/speech-to-text/transcripts/{path_segment(provider_job_id)}"
        try:
            return _transcript(self._calls.read(path), run=provider_job_id)
        except Gone:
            return Report(provider_job_id)

    def _dubbing(self, dubbing: answers.Body) -> Report:
        state, unknown = answers.status_of(dubbing, "status", states=DUBBING_STATES)
        done = state is JobState.SUCCEEDED
        return Report(
            provider_job_id=f"{_DUBBING_PREFIX}{dubbing['dubbing_id']}",
            state=state,
            unknown_status=unknown,
            output=dict(dubbing) if done else None,
            error=answers.error_of(dubbing.get("error")) if state is JobState.FAILED else None,
            links=self._dubbing_links(dubbing) if done else (),
        )

    def _dubbing_links(self, dubbing: answers.Body) -> tuple[Link, ...]:
        languages = dubbing.get("target_languages")
        url = f"{self._url}/v1/dubbing/{path_segment(dubbing['dubbing_id'])}/audio"
        found = languages if isinstance(languages, list) else []
        return tuple(Link(f"{url}/{path_segment(name)}") for name in found if isinstance(name, str))

    def cancel(self, provider_job_id: str) -> Report | None:
        """See the port. The run is read first: a DELETE that comes after its end would destroy its result."""
        if is_ended(self.status(provider_job_id)):
            raise AlreadyFinished("the run has ended; a DELETE now would erase its result")
        if provider_job_id.startswith(_DUBBING_PREFIX):
            path = f"/v1/dubbing/{path_segment(provider_job_id.removeprefix(_DUBBING_PREFIX))}"
        else:
            path = f"/v1/speech-to-text/transcripts/{path_segment(provider_job_id)}"
        self._calls.remove(path)
        return Report(provider_job_id, JobState.CANCELED)

    def read_webhook(self, body: Json, headers: Mapping[str, str]) -> WebhookReport:  # noqa: ARG002 - the port's shape
        """See the port."""
        if not isinstance(body, Mapping):
            raise Unusable("an event is a JSON object")
        kind, data = body.get("type"), body.get("data")
        if not (isinstance(kind, str) and kind.startswith(_EVENTS)) or not isinstance(data, Mapping):
            return WebhookReport(None, ignored_because="not about a transcript")
        token = _token_of(data.get("webhook_metadata"))
        transcript = data.get("transcription")
        if not isinstance(transcript, Mapping):
            report = Report(None, JobState.FAILED, error=_error(data))
        else:
            report = _success(answers.id_of(transcript.get("transcription_id")), transcript)
        if token is None and report.provider_job_id is None:
            return WebhookReport(None, ignored_because="names no transcript")
        return WebhookReport(report, token=token)


def _transcript(body: answers.Body, *, run: str) -> Report:
    if "text" not in body and "transcripts" not in body:
        raise Transient(f"not a transcript: it has {', '.join(sorted(body)[:10]) or 'nothing'}")
    if body.get("transcription_id") not in (None, run):
        raise Transient(f"not an answer about run {run}")
    return _success(run, body)


def _success(run: str | None, transcript: answers.Body) -> Report:
    return Report(run, JobState.SUCCEEDED, output=dict(transcript))


def _error(data: answers.Body) -> JobError | None:
    return answers.error_of(data.get("error"))


def _token_of(metadata: object) -> str | None:
    """The token, from an object or from the text of one."""
    if isinstance(metadata, str):
        try:
            metadata = json.loads(metadata)
        except (ValueError, RecursionError):
            return None
    return answers.id_of(metadata.get(TOKEN_FIELD)) if isinstance(metadata, Mapping) else None


def _form(inputs: Mapping[str, Json]) -> Iterable[tuple[str, str]]:
    for name, value in inputs.items():
        if not name or not name.isprintable() or '"' in name:
            raise Refused("an input field's name cannot stand in a form", code="invalid_input")
        yield from ((name, _text(item)) for item in (value if isinstance(value, list) else [value]) if item is not None)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
