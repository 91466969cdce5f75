"""The receiver: an authentic event is a committed row before anybody is told so.

One function, reached through two doors (``hot_path``, ``blueprint``). It judges the signature over the bytes on the
wire, before it decodes or parses anything; what is authentic is stored even where it cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from jobs.clock import Clock
from jobs.core.errors import BadRequest, JobsError, MethodNotAllowed, NotFound, SignatureError, Unavailable
from jobs.services.runtime import ProviderEntry
from webhooks.incoming.body import check_coding, read_body
from webhooks.incoming.events import NewEvent
from webhooks.incoming.exchange import Answer, Request, acknowledgement, problem_of, request_of, split_path
from webhooks.incoming.receiving.admission import Admission, Sent
from webhooks.incoming.receiving.committer import Committer
from webhooks.incoming.receiving.handshakes import handshake_answer
from webhooks.incoming.receiving.quarantine import Quarantine
from webhooks.incoming.wording import describe, traceback_of

#: Called once per answer with the provider's name (``unknown`` for what is not configured), the outcome and the
#: seconds it took.
Measure = Callable[[str, str, float], None]

_UNKNOWN = "unknown"

_log = structlog.get_logger(__name__)


def _not_measured(_provider: str, _outcome: str, _seconds: float) -> None:
    """Nobody counts."""


class Receiver:
    """Takes webhooks in. Thread-safe."""

    def __init__(
        self,
        providers: Mapping[str, ProviderEntry],
        *,
        admission: Admission,
        committer: Committer,
        quarantine: Quarantine,
        clock: Clock,
        max_bytes: int,
        measure: Measure = _not_measured,
    ) -> None:
        """Joins its parts.

        Args:
            providers: The configured entries, by name.
            admission: Says what is authentic.
            committer: Stores it.
            quarantine: Keeps what is not, for a while.
            clock: For signatures and ids.
            max_bytes: Of a body, as read.
            measure: Counts answers.
        """
        self._providers = providers
        self._admission = admission
        self._committer = committer
        self._quarantine = quarantine
        self._clock = clock
        self._max_bytes = max_bytes
        self._measure = measure

    def answer(self, environ: Mapping[str, Any]) -> Answer:
        """Answers a WSGI request, whatever is in it; never raises."""
        started_s = self._clock.monotonic()
        try:
            answer = self.receive(request_of(environ))
        except BadRequest as error:
            answer = problem_of(error)
        except Exception as error:  # noqa: BLE001 - the edge: the sender is told to come again, and the log says why
            _log.error("a webhook could not be received", error=describe(error), **traceback_of(error))
            answer = problem_of(Unavailable())
        provider = self._provider_of(environ)
        self._measure(provider, answer.outcome, self._clock.monotonic() - started_s)
        return answer

    def receive(self, request: Request) -> Answer:
        """Takes one request in; every refusal of the contract is an answer."""
        try:
            return self._take(request)
        except MethodNotAllowed as error:
            return problem_of(error, {"Allow": "POST"})
        except JobsError as error:
            _note_refusal(request, error)
            return problem_of(error)

    def _take(self, request: Request) -> Answer:
        """Reads, proves and stores one event.

        Raises:
            JobsError: It is refused.
        """
        if request.method != "POST":
            raise MethodNotAllowed("webhooks are sent by POST")
        entry, token = self._addressee(request.path)
        self._admission.secrets_of(entry)  # without any, no body is worth reading
        check_coding(request.headers)
        raw = read_body(request.stream, length=request.length, limit_bytes=self._max_bytes)
        event = self._admit(entry, Sent(token, request.target, request.headers, raw))
        stored = self._committer.submit(event)
        return handshake_answer(entry, event) or acknowledgement(stored.status, stored.event_id)

    def _admit(self, entry: ProviderEntry, sent: Sent) -> NewEvent:
        now = self._clock.now()
        try:
            return self._admission.admit(entry, sent, at=now)
        except SignatureError as refusal:
            self._quarantine.keep(entry, sent, at=now, reason=refusal.reason)
            raise

    def _addressee(self, path: str) -> tuple[ProviderEntry, str | None]:
        named = split_path(path)
        if named is None or named[0] not in self._providers:
            raise NotFound("no provider of that name is configured here")
        return self._providers[named[0]], named[1]

    def _provider_of(self, environ: Mapping[str, Any]) -> str:
        named = split_path(environ.get("PATH_INFO", ""))
        return named[0] if named and named[0] in self._providers else _UNKNOWN


def _note_refusal(request: Request, error: JobsError) -> None:
    """One line per refusal; it names the reason, and never a header or the body."""
    named = split_path(request.path)
    reason = error.reason if isinstance(error, SignatureError) else error.detail
    _log.info("webhook refused", provider=named[0][:100] if named else None, status=error.status, reason=reason)
