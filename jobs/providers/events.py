"""Senders that are no job providers: Stripe, GitHub, Resend, Slack, Shopify, Twilio …

Their webhooks are verified, deduplicated, stored and handed on as ``webhook.received``; nothing is ever asked of them.
A delivery's id is that of the scheme, or of a header or a field of a JSON body that the entry names
(``webhook_delivery_id_header``, ``webhook_delivery_id_field``); without one nothing is a repeat of anything.
"""

from __future__ import annotations

from collections.abc import Mapping

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.observations import Json
from jobs.net.http import HttpClient
from jobs.providers.port import Capabilities, Gone, KeyUse, Refused, Report, SubmitRequest, WebhookReport

_CAPABILITIES = Capabilities(
    keys=KeyUse.NONE,
    search=False,
    cancel=False,
    callback_per_request=False,
    receives_only=True,
)
#: What ``homing providers check`` sends, signed like any other: no handler should see it.
SELF_TEST_TYPE = "homing.self_test"
_WHY = "this entry only receives events; it runs no jobs"


class EventSender:
    """Receives, and does nothing else."""

    def __init__(self, config: ProviderConfig, client: HttpClient, clock: Clock) -> None:
        """The client and the clock are the registry's to give; neither is used."""
        del client, clock
        self._id_path = tuple((config.webhook_delivery_id_field or "").split("."))

    @property
    def capabilities(self) -> Capabilities:
        """See the port."""
        return _CAPABILITIES

    def submit(self, request: SubmitRequest) -> Report:  # noqa: ARG002 - the port's shape
        """See the port."""
        raise Refused(_WHY, code="receives_only")

    def find(self, *, idempotency_key: str, token: str) -> tuple[Report, ...]:  # noqa: ARG002 - the port's shape
        """See the port."""
        return ()

    def status(self, provider_job_id: str) -> Report:  # noqa: ARG002 - the port's shape
        """See the port."""
        raise Gone(_WHY)

    def cancel(self, provider_job_id: str) -> Report | None:  # noqa: ARG002 - the port's shape
        """See the port."""
        raise Gone(_WHY)

    def read_webhook(self, body: Json, headers: Mapping[str, str]) -> WebhookReport:  # noqa: ARG002 - the port's shape
        """See the port; the body is None where it is no JSON."""
        if isinstance(body, Mapping) and body.get("type") == SELF_TEST_TYPE:
            return WebhookReport(None, ignored_because="a self-test of ours")
        found: Json = body
        for name in self._id_path:
            found = found.get(name) if isinstance(found, Mapping) else None
        is_number = isinstance(found, int) and not isinstance(found, bool)
        return WebhookReport(None, str(found) if is_number else found if isinstance(found, str) else None)
