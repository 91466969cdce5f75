"""Runway: generation tasks that are only ever polled.

``input.endpoint`` names the route (``image_to_video`` by default, ``text_to_video``, ``text_to_image``,
``video_upscale`` …), the rest of the input is its body, in Runway's camelCase.

What is known, and how well:

- Routes, bodies, ``X-Runway-Version``, ``Bearer``; statuses; ``output`` is a list of URLs that run out after 24 to 48
  hours, and a new read of the task brings fresh ones; poll a task no more often than every five seconds; ``DELETE``
  cancels a task that is pending, throttled or running and *deletes* any other, which can never be read again: vendor
  source (runwayml 5.24.0).
- ``THROTTLED`` is accepted work that waits for the account's concurrency, not an error: vendor source.
- There is no list, no webhook and no idempotency key: none found in the vendor's client. So a submit whose answer is
  lost goes to a person at once: nobody can be asked.
- ``cost.credits`` counts credits. What one costs is the account's contract, so it is shown in the output and not
  taken for money.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.observations import JobError, Json, Link
from jobs.core.states import JobState
from jobs.net.http import HttpClient
from jobs.providers import answers
from jobs.providers.calls import Calls, about, accepted_id, credential_of, dump, is_ended, path_segment, taken_endpoint
from jobs.providers.port import AlreadyFinished, Capabilities, Report, SubmitRequest, WebhookReport

VERSION = "2024-11-06"

STATES: Mapping[str, JobState] = {
    "pending": JobState.PENDING,
    "throttled": JobState.PENDING,
    "running": JobState.RUNNING,
    "succeeded": JobState.SUCCEEDED,
    "failed": JobState.FAILED,
    "cancelled": JobState.CANCELED,
}

CAPABILITIES = Capabilities(
    callback_per_request=False,
    lists_artifacts=True,
    polls_min_interval=timedelta(seconds=5),
    result_ttl=timedelta(hours=24),
)


class RunwayProvider:
    """One account at Runway."""

    capabilities = CAPABILITIES

    def __init__(self, config: ProviderConfig, client: HttpClient, clock: Clock) -> None:
        """Dials nobody yet."""
        headers = {"Authorization": f"Bearer {credential_of(config)}", "X-Runway-Version": VERSION}
        self._calls = Calls(client, clock, config.base_url.rstrip("/"), headers)

    def submit(self, request: SubmitRequest) -> Report:
        """See the port. The answer names the task and no status."""
        inputs = dict(request.input)
        endpoint = taken_endpoint(inputs, default="image_to_video")
        body = self._calls.submit(f"/v1/{endpoint}", body=dump(inputs))
        return Report(accepted_id(body, "id"))

    def find(self, *, idempotency_key: str, token: str) -> tuple[Report, ...]:  # noqa: ARG002 - the port's shape
        """Nothing: there is no list to look in."""
        return ()

    def status(self, provider_job_id: str) -> Report:
        """See the port."""
        task = self._calls.read(f"/v1/tasks/{path_segment(provider_job_id)}")
        return _report(about(task, run=provider_job_id))

    def cancel(self, provider_job_id: str) -> Report | None:
        """See the port. The task is read first: a DELETE that comes after its end would destroy its result."""
        if is_ended(self.status(provider_job_id)):
            raise AlreadyFinished("the task has ended; a DELETE now would erase its result")
        self._calls.remove(f"/v1/tasks/{path_segment(provider_job_id)}")
        return Report(provider_job_id, JobState.CANCELED)

    def read_webhook(self, body: Json, headers: Mapping[str, str]) -> WebhookReport:  # noqa: ARG002 - the port's shape
        """Nothing: Runway sends none."""
        return WebhookReport(None, ignored_because="Runway sends no webhooks")


def _report(task: answers.Body) -> Report:
    state, unknown = answers.status_of(task, "status", states=STATES)
    urls = task.get("output") if isinstance(task.get("output"), list) else None
    return Report(
        provider_job_id=answers.id_of(task.get("id")),
        state=state,
        unknown_status=unknown,
        progress=answers.progress_of(task.get("progress")),
        output={"output": urls, "cost": task.get("cost")} if state is JobState.SUCCEEDED else None,
        error=_error(task) if state is JobState.FAILED else None,
        links=tuple(Link(url) for url in urls or () if isinstance(url, str)),
    )


def _error(task: answers.Body) -> JobError | None:
    return answers.error_of({"code": task.get("failureCode"), "message": task.get("failure")})
