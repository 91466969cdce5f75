"""OpenAI: batches, background responses and fine-tuning jobs. No video: it is retired.

The input is the body of OpenAI's own request. Which of the three it is says ``kind`` in the entry, else ``input.kind``
(``batch``, ``response``, ``fine-tune``), else the input itself: ``input_file_id`` makes a batch, ``training_file`` a
fine-tuning job, anything else a response. The files are uploaded beforehand.

What is known, and how well:

- Routes, ``Bearer``, bodies: seen leaving the vendor's client (openai 3.57.0). Statuses, event names, that a canceled
  batch is ``cancelling`` for up to ten minutes and keeps its partial output, that the id of an event is thin
  (``data.id``): the vendor's source and API description.
- Webhooks belong to the project, signed by Standard Webhooks, up to 72 hours of retries in no promised order (third
  party). They name a run and never bring its result, so each only says "look".
- No idempotency key: the vendor's description has none. What we submit carries our token in ``metadata``: by it
  fine-tuning jobs are searched, and batches looked through. Responses have no list: a lost answer goes to a person.
- Guessed: a cancel that comes too late answers 400 or 409; ids begin with ``batch_``, ``resp_`` and ``ftjob-``.
- A response whose input says ``"stream": true`` tells its text while it is written. It is created with ``background``
  and ``stream`` both true, is told again from any ``sequence_number`` on (``?stream=true&starting_after=``), and goes
  on without a listener: vendor documentation and client. Its submit is answered by that stream, of which we read the
  first event. Only a response created like this can be listened to, others answer 400: the vendor's answer as a third
  party quotes it; so do those older than five minutes: third party. Names of events: vendor's source.
- Our choice: a batch that completed without one good row has failed; ``cancelling`` still runs; ``incomplete`` and
  ``expired`` have failed and keep what came out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.errors import Transient, UnknownOutcome, Unusable
from jobs.core.observations import Json
from jobs.net.event_streams import EventStreams
from jobs.net.http import HttpClient
from jobs.providers import answers
from jobs.providers.calls import Calls, about, accepted_id, credential_of, dump, is_ended, path_segment
from jobs.providers.listening import BROKE_OFF, Listener, object_of, text_of
from jobs.providers.openai_kinds import KINDS, RESPONSE, Kind, kind_of_event, kind_of_input, kind_of_run, report_of
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

#: The name of our token among a run's metadata.
TOKEN = "homing_token"  # noqa: S105 - a name

_TOO_LATE = frozenset({400, 409})
_MOST_METADATA = 16
_NOT_TO_BE_HEARD = frozenset({400, 404, 410})
_TEXT = "response.output_text.delta"
_ENDS = frozenset(f"response.{word}" for word in ("completed", "failed", "incomplete", "cancelled"))
# The newest come first, and a lost submit is new: this many pages are looked through.
_PAGES, _PAGE = 3, "100"


class OpenAIProvider:
    """One project at OpenAI."""

    resumes_output = True

    def __init__(
        self, config: ProviderConfig, client: HttpClient, clock: Clock, streams: EventStreams | None = None
    ) -> None:
        """Dials nobody yet."""
        headers = {"Authorization": f"Bearer {credential_of(config)}"}
        self._calls = Calls(client, clock, config.base_url.rstrip("/"), headers)
        listener = Listener.of(config, streams or EventStreams(), clock=clock, headers=headers)
        self._listener = replace(listener, gone=_NOT_TO_BE_HEARD)
        self._kind = KINDS[config.kind] if config.kind else None
        self.capabilities = Capabilities(
            search=self._kind is None or self._kind.is_listed,
            callback_per_request=False,
            webhook_is_hint=True,
            address_field="kind",
        )

    def submit(self, request: SubmitRequest) -> Report:
        """See the port."""
        body = dict(request.input)
        kind = kind_of_input(body, only=self._kind)
        body.pop("kind", None)
        metadata = body.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            raise Refused("input.metadata must be an object of texts", code="invalid_input")
        if len(metadata) < _MOST_METADATA:
            body["metadata"] = {**metadata, TOKEN: request.token}
        answer = self._answer(kind, {**kind.defaults, **body, **kind.fixed})
        report = self._report(kind, {**answer, "id": accepted_id(answer, "id")})
        return replace(report, state=None, error=None) if is_ended(report) else report

    def _answer(self, kind: Kind, body: dict[str, Json]) -> answers.Body:
        if not _streams(kind, body):
            return self._calls.submit(kind.path, body=dump(body))
        first = self._listener.submit(self._calls.url + kind.path, body=dump(body))
        response = first.get("response", first)
        if not isinstance(response, dict):
            raise UnknownOutcome("the stream that answered the submit names no response")
        return response

    def find(self, *, idempotency_key: str, token: str) -> tuple[Report, ...]:  # noqa: ARG002 - the port's shape
        """See the port."""
        kinds = (self._kind,) if self._kind else tuple(KINDS.values())
        return tuple(
            self._report(kind, run) for kind in kinds if kind.is_listed for run in self._runs_with(kind, token=token)
        )

    def _runs_with(self, kind: Kind, *, token: str) -> Iterator[answers.Body]:
        params = {"limit": _PAGE} | ({f"metadata[{TOKEN}]": token} if kind.filters_metadata else {})
        for _page in range(_PAGES):
            page = self._calls.read(kind.path, params=params)
            runs = answers.objects_of(page.get("data"), of="runs")
            yield from (run for run in runs if _token_of(run) == token)
            if page.get("has_more") is not True or not runs:
                return
            params["after"] = str(runs[-1].get("id"))

    def status(self, provider_job_id: str) -> Report:
        """See the port."""
        kind, run = self._place(provider_job_id)
        return self._report(kind, about(self._calls.read(f"{kind.path}/{path_segment(run)}"), run=run))

    def cancel(self, provider_job_id: str) -> Report | None:
        """See the port. A batch goes on canceling for a while; how it ends is read."""
        kind, run = self._place(provider_job_id)
        answer = self._calls.ask("POST", f"{kind.path}/{path_segment(run)}/cancel")
        if answer.status in _TOO_LATE:
            raise AlreadyFinished(answers.describe(answer, "too late"))
        return self._report(kind, about(self._calls.object_of(answer), run=run))

    def can_follow(self, inputs: Mapping[str, Json]) -> bool:
        """See the port."""
        try:
            return _streams(kind_of_input(inputs, only=self._kind), inputs)
        except Refused:
            return False

    def follow_output(self, provider_job_id: str, *, after: str | None = None) -> Iterator[OutputDelta]:
        """See the port. The place is the number of an event."""
        kind, run = self._place(provider_job_id)
        url = f"{self._calls.url}{kind.path}/{path_segment(run)}?stream=true"
        for message in self._listener.hear(url if after is None else f"{url}&starting_after={after}"):
            event = object_of(message)
            if event.get("type") in _ENDS:
                return
            number = _number_of(event)
            if after is not None and number is not None and int(number) <= int(after):
                continue  # who was asked to go on and begins at the beginning repeats what is kept
            if event.get("type") == _TEXT and (text := text_of(event.get("delta"))):
                yield OutputDelta(text, number)
        raise Transient(BROKE_OFF)

    def _place(self, address: str) -> tuple[Kind, str]:
        named, _, run = address.rpartition("/")
        kind = self._kind or KINDS.get(named) or kind_of_run(run)
        if kind is None:
            raise Gone("its id says neither batch, response nor fine-tuning job")
        return kind, run

    def _report(self, kind: Kind, run: answers.Body) -> Report:
        return report_of(kind, run, url=self._calls.url)

    def read_webhook(self, body: Json, headers: Mapping[str, str]) -> WebhookReport:  # noqa: ARG002 - the port's shape
        """See the port. Believed for nothing but the run's id; its word tells a repeat from a contradiction."""
        if not isinstance(body, Mapping):
            raise Unusable("an event is a JSON object")
        delivery_id, data = answers.id_of(body.get("id")), body.get("data")
        kind, word = kind_of_event(body.get("type"))
        run = answers.id_of(data.get("id")) if isinstance(data, Mapping) else None
        if kind is None or run is None:
            return WebhookReport(None, delivery_id, ignored_because="speaks of no batch, response or fine-tuning job")
        state, unknown = answers.status_of({"status": word}, "status", states=kind.states)
        return WebhookReport(Report(run, state, unknown), delivery_id)


def _token_of(run: answers.Body) -> object:
    metadata = run.get("metadata")
    return metadata.get(TOKEN) if isinstance(metadata, Mapping) else None


def _streams(kind: Kind, inputs: Mapping[str, Json]) -> bool:
    return kind is RESPONSE and inputs.get("stream") is True


def _number_of(event: answers.Body) -> str | None:
    number = event.get("sequence_number")
    return str(number) if isinstance(number, int) and not isinstance(number, bool) else None
