"""Senders that try a URL before they use it want their own word back, not ours."""

from __future__ import annotations

import re

from jobs.services.runtime import ProviderEntry
from webhooks.incoming.events import NewEvent
from webhooks.incoming.exchange import Answer
from webhooks.incoming.reading import json_or_none

_CHALLENGE = re.compile(r"[A-Za-z0-9._~-]{1,200}")
#: A handshake is short; whatever is longer is an event, and is not parsed a second time.
_MAX_BYTES = 2048


def handshake_answer(entry: ProviderEntry, event: NewEvent) -> Answer | None:
    """The answer to Slack's ``url_verification``, authentic like any event; None for everything else.

    Source: Slack, "Using the HTTP Events API", request URL configuration.
    """
    if entry.config.webhook_scheme != "slack" or len(event.raw) > _MAX_BYTES:
        return None
    said = json_or_none(event.raw)
    if not isinstance(said, dict) or said.get("type") != "url_verification":
        return None
    challenge = said.get("challenge")
    if not isinstance(challenge, str) or not _CHALLENGE.fullmatch(challenge):
        return None
    return Answer(200, challenge.encode(), {"Content-Type": "text/plain"}, "accepted")
