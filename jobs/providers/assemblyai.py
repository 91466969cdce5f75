"""AssemblyAI: transcripts.

The input is the body of ``POST /v2/transcript`` (``audio_url`` and options).

What is known, and how well:

- ``authorization: <key>`` without a scheme, paths and status words, ``webhook_url``, ``webhook_auth_header_name`` and
  ``…_value``: vendor source (assemblyai 1.8.2) and documentation.
- The webhook is ``{"transcript_id", "status"}`` and carries our own secret in a header of our choice; the body is bound
  by nothing. It is tried up to 10 times, 10 s apart, each with 10 s to answer, and *a 4xx ends the trying*: vendor
  documentation. Homing refuses with 403 only what does not carry the secret, and answers 503 whenever the fault is
  its own, so that a delivery is never lost to an outage of ours. Polling brings home what was.
- No idempotency key and no cancel: none found. ``GET /v2/transcript`` lists transcripts without their callback URL,
  so a run cannot be found by our token: a lost answer waits for its webhook, or for a person.
- ``DELETE /v2/transcript/{id}`` erases the data of a transcript and is no cancel: vendor documentation.
- Transcripts are kept for 30 days by one page, for ever by others, 3 days under a BAA: the vendor contradicts itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.errors import Unusable
from jobs.core.observations import JobError, Json
from jobs.core.states import JobState
from jobs.net.http import HttpClient
from jobs.providers import answers
from jobs.providers.calls import Calls, about, accepted_id, credential_of, dump, path_segment
from jobs.providers.port import Capabilities, Report, SubmitRequest, WebhookReport

#: Where AssemblyAI puts our secret, unless the entry's ``webhook_header`` names another place.
WEBHOOK_HEADER = "X-Webhook-Secret"

STATES: Mapping[str, JobState] = {
    "queued": JobState.PENDING,
    "processing": JobState.RUNNING,
    "completed": JobState.SUCCEEDED,
    "error": JobState.FAILED,
}

CAPABILITIES = Capabilities(cancel=False, webhook_is_hint=True)


class AssemblyAIProvider:
    """One account at AssemblyAI."""

    capabilities = CAPABILITIES

    def __init__(self, config: ProviderConfig, client: HttpClient, clock: Clock) -> None:
        """Dials nobody yet."""
        self._calls = Calls(client, clock, config.base_url.rstrip("/"), {"Authorization": credential_of(config)})
        self._webhook_header = config.webhook_header or WEBHOOK_HEADER
        self._webhook_secrets = config.webhook_secrets

    def submit(self, request: SubmitRequest) -> Report:
        """See the port. Without a secret no callback is asked for: its events could not be taken."""
        body = {**request.input, **self._callback(request.callback_url)}
        return Report(accepted_id(self._calls.submit("/v2/transcript", body=dump(body)), "id"))

    def _callback(self, url: str) -> Mapping[str, Json]:
        if not self._webhook_secrets:
            return {}
        return {
            "webhook_url": url,
            "webhook_auth_header_name": self._webhook_header,
            "webhook_auth_header_value": self._webhook_secrets[0].key.decode(),
        }

    def find(self, *, idempotency_key: str, token: str) -> tuple[Report, ...]:  # noqa: ARG002 - the port's shape
        """Nothing: the list does not say whose transcript is whose."""
        return ()

    def status(self, provider_job_id: str) -> Report:
        """See the port."""
        transcript = self._calls.read(f"/v2/transcript/{path_segment(provider_job_id)}")
        return _report(about(transcript, run=provider_job_id))

    def cancel(self, provider_job_id: str) -> Report | None:  # noqa: ARG002 - the port's shape
        """Nothing can be canceled; the capabilities say so."""
        return None

    def read_webhook(self, body: Json, headers: Mapping[str, str]) -> WebhookReport:  # noqa: ARG002 - the port's shape
        """See the port."""
        if not isinstance(body, Mapping):
            raise Unusable("an event is a JSON object")
        run = answers.id_of(body.get("transcript_id"))
        if run is None:
            return WebhookReport(None, ignored_because="names no transcript")
        state, unknown = answers.status_of(body, "status", states=STATES)
        return WebhookReport(Report(run, state, unknown))


def _report(transcript: answers.Body) -> Report:
    state, unknown = answers.status_of(transcript, "status", states=STATES)
    return Report(
        provider_job_id=answers.id_of(transcript.get("id")),
        state=state,
        unknown_status=unknown,
        output=_output(transcript) if state is JobState.SUCCEEDED else None,
        error=_error(transcript) if state is JobState.FAILED else None,
    )


def _output(transcript: answers.Body) -> Json:
    """All of it but our own callback, whose token is nobody else's business."""
    return {name: value for name, value in transcript.items() if not name.startswith("webhook_")}


def _error(transcript: answers.Body) -> JobError | None:
    return answers.error_of(transcript.get("error"))
