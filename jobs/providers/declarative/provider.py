"""``adapter = "declarative"``: the port, carried out as a mapping says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from jobs.clock import Clock
from jobs.config.mapping.model import Call, ProviderMapping, Search
from jobs.config.providers import ProviderConfig
from jobs.core.errors import JobsError, Permanent, Transient, UnknownOutcome, Unusable
from jobs.core.observations import Json
from jobs.core.states import JobState, is_terminal
from jobs.core.templates import Values
from jobs.net.event_streams import EventStreams
from jobs.net.http import Answer, HttpClient, NoAnswer
from jobs.providers import answers
from jobs.providers.declarative.requests import Prepared, Requests, header_value
from jobs.providers.declarative.runs import matching, read_run, run_id, state_of, word_of
from jobs.providers.declarative.streams import OutputStreams
from jobs.providers.listening import Listener
from jobs.providers.port import (
    AlreadyFinished,
    Capabilities,
    Gone,
    KeyReused,
    KeyUse,
    OutputDelta,
    Refused,
    Report,
    SubmitRequest,
    WebhookReport,
)


class DeclarativeProvider:
    """One account at a provider that homing.toml, or a preset, describes."""

    def __init__(
        self, config: ProviderConfig, client: HttpClient, clock: Clock, streams: EventStreams | None = None
    ) -> None:
        """Dials nobody yet."""
        assert config.mapping is not None, "an entry of a described adapter is read with its description"
        self._mapping = config.mapping
        self._requests = Requests(config.mapping, config.base_url.rstrip("/"))
        self._client = client
        self._clock = clock
        self._capabilities = capabilities_of(config.mapping)
        listener = Listener.of(config, streams or EventStreams(), clock=clock, headers={})
        listener = replace(listener, gone=config.mapping.status.gone)
        self._output = OutputStreams(config.mapping.stream, self._requests, listener)

    @property
    def capabilities(self) -> Capabilities:
        """What follows from the sections that are there."""
        return self._capabilities

    def submit(self, request: SubmitRequest) -> Report:
        """See the port. What the mapping cannot send is refused before anything leaves."""
        submit = self._mapping.submit
        try:
            prepared = self._requests.prepare(submit.call, _of_request(request), headers=self._key_header(request))
        except Permanent as error:
            raise Refused(f"this input cannot be sent: {error.detail}", code="invalid_input") from error
        answer = self._client.request(
            prepared.method, prepared.url, headers=prepared.headers, body=prepared.body, fresh=True
        )
        return self._accepted(answer)

    def _key_header(self, request: SubmitRequest) -> dict[str, str]:
        promise = self._mapping.submit.idempotency
        if promise is None or promise.header is None:
            return {}
        return {promise.header: header_value(promise.header, request.idempotency_key)}

    def _accepted(self, answer: Answer) -> Report:
        submit = self._mapping.submit
        if not answer.is_success:
            raise self._refusal(answer)
        try:
            body = answers.read_object(answer)
        except Transient as error:
            raise UnknownOutcome(error.detail) from error
        if submit.refused_if is not None and submit.refused_if.is_true(body):
            raise self._refused(answer, body)
        run = run_id(submit.id, body)
        if run is None:
            raise UnknownOutcome(answers.describe(answer, "accepted without an id"))
        # A replay may name an end without its result: an end is only believed where a read brings that along.
        state, _unknown = state_of(self._mapping.status.run, body)
        return Report(run, None if state is None or is_terminal(state) else state)

    def _refusal(self, answer: Answer) -> JobsError:
        body = _object_of(answer)
        promise = self._mapping.submit.idempotency
        is_client_fault = 400 <= answer.status < 500
        if is_client_fault and promise and promise.rejected_if and promise.rejected_if.is_true(body):
            return KeyReused("the provider has seen this key before and does not say which run it began")
        fault = answers.submit_fault(answer, now=self._clock.now())
        return self._refused(answer, body) if isinstance(fault, Refused) else fault

    def _refused(self, answer: Answer, body: object) -> Refused:
        query = self._mapping.submit.error
        said = answers.error_of(query.find(body)) if query else None
        if said is None:
            return Refused(answers.message_of(answer) or answers.describe(answer, "answered"))
        return Refused(said.message, code="refused" if said.code == "provider_error" else said.code)

    def find(self, *, idempotency_key: str, token: str) -> tuple[Report, ...]:
        """See the port. The mapping's calls are made in turn until one finds something."""
        search = self._mapping.search
        values = {"attempt": {"token": token, "key": idempotency_key}}
        for call in search.calls if search else ():
            found = tuple(self._search(call, search, values=values)) if search else ()
            if found:
                return found
        return ()

    def _search(self, call: Call, search: Search, *, values: Values) -> Iterator[Report]:
        answer = self._ask(self._requests.prepare(call, values))
        if not answer.is_success:
            raise self._delay(answer)
        body = answers.read_any(answer)
        places = matching(search, body, values, answer) if search.items else [body]
        for place in places:
            found = search.id.find(place)
            for item in found if isinstance(found, list) else [found]:
                run = answers.id_of(str(item) if isinstance(item, int) else item)
                if run is not None:
                    yield Report(run)

    def status(self, provider_job_id: str) -> Report:
        """See the port."""
        status = self._mapping.status
        run, address = self._split(provider_job_id)
        answer = self._about(run, status.call, address=address)
        body = answers.read_object(answer)
        word = word_of(status.run, body)
        if isinstance(word, str) and word.strip().lower() in status.gone_words:
            raise Gone(answers.describe(answer, "the run is not known"))
        if not self._speaks_of(run, body):
            raise Transient(answers.describe(answer, f"not an answer about run {run}"))
        return self._report(body, run)

    def _split(self, address: str) -> tuple[str, str | None]:
        """A run's id, and the input's field in front of it where the mapping asks for one."""
        if self._mapping.submit.address is None:
            return address, None
        field, _, run = address.rpartition("/")
        return run, field or None

    def _speaks_of(self, run: str, body: object) -> bool:
        """Whether an answer is about this run: it must say so where the mapping says how, and never say otherwise."""
        if self._mapping.status.id is not None:
            return run_id(self._mapping.status.id, body) == run
        return run_id(self._mapping.submit.id, body) in (None, run)

    def cancel(self, provider_job_id: str) -> Report | None:
        """See the port. Any answer under 2xx that is no page counts as taken; the next read shows what came of it."""
        cancel = self._mapping.cancel
        if cancel is None:
            raise Transient("no way to cancel is described")
        if cancel.only_open:
            _check_open(self.status(provider_job_id))
        run, address = self._split(provider_job_id)
        answer = self._about(run, cancel.call, address=address, too_late=cancel.finished)
        if answer.body.lstrip()[:1] == b"<":
            raise Transient(answers.describe(answer, "not an answer"))
        if cancel.settles:
            return Report(run, JobState.CANCELED)
        body = _object_of(answer)
        report = self._report(body, run) if body is not None and self._speaks_of(run, body) else None
        return report if report is not None and report.state is not None else None

    def _about(self, run: str, call: Call, *, address: str | None, too_late: frozenset[int] = frozenset()) -> Answer:
        """A 2xx answer to a request about a run."""
        try:
            prepared = self._requests.prepare(call, {"job": {"provider_job_id": run, "address": address}})
        except Permanent as error:
            raise Gone(f"no run has such an id: {error.detail}") from error
        answer = self._ask(prepared)
        if answer.status in too_late:
            raise AlreadyFinished(answers.describe(answer, "too late"))
        if answer.status in self._mapping.status.gone:
            raise Gone(answers.describe(answer, "answered"))
        if not answer.is_success:
            raise self._delay(answer)
        return answer

    def _delay(self, answer: Answer) -> Transient:
        return answers.delay(answer, now=self._clock.now())

    def _ask(self, request: Prepared) -> Answer:
        """A request that may be repeated: an answer that did not come is only a delay."""
        try:
            return self._client.request(request.method, request.url, headers=request.headers, body=request.body)
        except NoAnswer as error:
            raise Transient(error.detail) from error

    def _report(self, body: object, run: str) -> Report:
        mapping = self._mapping
        return read_run(mapping.status.run, body, run=run, artifacts=mapping.artifacts, now=self._clock.now())

    @property
    def resumes_output(self) -> bool:
        """As the section says."""
        return self._output.resumes

    def can_follow(self, inputs: Mapping[str, Json]) -> bool:
        """See the port."""
        return self._output.can_follow(inputs)

    def follow_output(self, provider_job_id: str, *, after: str | None = None) -> Iterator[OutputDelta]:
        """See the port."""
        run, address = self._split(provider_job_id)
        return self._output.follow({"job": {"provider_job_id": run, "address": address}}, after=after)

    def read_webhook(self, body: Json, headers: Mapping[str, str]) -> WebhookReport:  # noqa: ARG002 - the port's shape
        """See the port."""
        webhook = self._mapping.webhook
        if not isinstance(body, Mapping):
            raise Unusable("an event is a JSON object")
        if webhook is None:
            return WebhookReport(None, ignored_because="no webhook of this provider is described")
        delivery_id = run_id(webhook.delivery_id, body) if webhook.delivery_id else None
        if webhook.only_if is not None and not webhook.only_if.is_true(body):
            return WebhookReport(None, delivery_id, ignored_because="of no interest by only_if")
        run, token = run_id(webhook.job_id, body), run_id(webhook.token, body) if webhook.token else None
        if run is None:
            return WebhookReport(None, delivery_id, ignored_because="names no job")
        if word_of(webhook.run, body) is None:
            return WebhookReport(None, delivery_id, ignored_because="names no status")
        report = read_run(webhook.run, body, run=run, artifacts=self._mapping.artifacts, now=self._clock.now())
        return WebhookReport(report, delivery_id, token=token, is_hint=self._lacks_its_result(report))

    def _lacks_its_result(self, report: Report) -> bool:
        """Whether a success comes without what a status read would bring: believed so, the result would be lost."""
        webhook, run = self._mapping.webhook, self._mapping.status.run
        if report.state is not JobState.SUCCEEDED or webhook is None or webhook.is_trusted:
            return False
        return (run.output is not None and report.output is None) or (run.urls is not None and not report.links)


def _check_open(report: Report) -> None:
    """Let a run be that has ended: its result would go with it.

    Raises:
        AlreadyFinished: It has.
    """
    if report.state is not None and is_terminal(report.state):
        raise AlreadyFinished("the run has ended; what ends an open one would erase its result")


def capabilities_of(mapping: ProviderMapping) -> Capabilities:
    """What may be assumed of a provider, by what its description holds and what it does not."""
    promise = mapping.submit.idempotency
    return Capabilities(
        keys=KeyUse(promise.reuse) if promise else KeyUse.NONE,
        key_window=promise.window if promise else None,
        search=mapping.search is not None,
        cancel=mapping.cancel is not None,
        callback_per_request=mapping.calls_back,
        webhook_is_hint=mapping.webhook is not None and mapping.webhook.is_hint,
        address_field=mapping.submit.address,
        lists_artifacts=mapping.status.run.urls is not None,
        polls_min_interval=mapping.status.min_interval,
        result_ttl=mapping.artifacts.expires,
    )


def _of_request(request: SubmitRequest) -> Values:
    return {
        "input": dict(request.input),
        "job": {"id": request.job_id},
        "attempt": {"token": request.token, "key": request.idempotency_key},
        "callback_url": request.callback_url,
    }


def _object_of(answer: Answer) -> answers.Body | None:
    try:
        return answers.read_object(answer)
    except Transient:
        return None
