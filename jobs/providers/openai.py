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
- Our choice: a batch that completed without one good row has failed; ``cancelling`` still runs; ``incomplete`` and
  ``expired`` have failed and keep what came out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.errors import Unusable
from jobs.core.observations import Json
from jobs.net.http import HttpClient
from jobs.providers import answers
from jobs.providers.calls import Calls, about, accepted_id, credential_of, dump, is_ended, path_segment
from jobs.providers.openai_kinds import KINDS, Kind, kind_of_event, kind_of_input, kind_of_run, report_of
from jobs.providers.port import AlreadyFinished, Capabilities, Gone, Refused, Report, SubmitRequest, WebhookReport

#: The name of our token among a run's metadata.
TOKEN = "homing_token"  # noqa: S105 - a name

_TOO_LATE = frozenset({400, 409})
_MOST_METADATA = 16
# The newest come first, and a lost submit is new: this many pages are looked through.
_PAGES, _PAGE = 3, "100"


class OpenAIProvider:
    """One project at OpenAI."""

    def __init__(self, config: ProviderConfig, client: HttpClient, clock: Clock) -> None:
        """Dials nobody yet."""
        headers = {"Authorization": f"Bearer {credential_of(config)}"}
        self._calls = Calls(client, clock, config.base_url.rstrip("/"), headers)
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
        answer = self._calls.submit(kind.path, body=dump({**kind.defaults, **body, **kind.fixed}))
        report = self._report(kind, {**answer, "id": accepted_id(answer, "id")})
        return replace(report, state=None, error=None) if is_ended(report) else report

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
