"""A provider's capabilities in a line for a person: what may be assumed, and what follows where it may not."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.core.durations import format_duration
from jobs.providers.port import Capabilities, KeyUse


def assumed(capabilities: Capabilities) -> str:
    """Return what Homing assumes of a provider."""
    return "; ".join(_phrases(capabilities))


def _phrases(capabilities: Capabilities) -> Iterator[str]:
    window = f" for {format_duration(capabilities.key_window)}" if capabilities.key_window else ""
    if capabilities.keys is KeyUse.REPLAY:
        yield f"a repeated key answers the same run{window}"
    elif capabilities.keys is KeyUse.REJECT:
        yield f"a repeated key is refused{window}"
    if capabilities.search:
        yield "runs are searched after a lost answer"
    elif capabilities.keys is KeyUse.NONE:
        yield "a lost answer to a submit waits for a webhook or a person"
    yield "runs can be canceled" if capabilities.cancel else "runs cannot be canceled"
    yield "each submit names its callback URL" if capabilities.callback_per_request else "no callback URL is sent"
    if capabilities.webhook_is_hint:
        yield "an event leads to a status read"
