"""A provider whose runs tell their output while they make it, by script."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.config.providers import ProviderConfig
from jobs.core.policy import Policy
from jobs.providers.port import Capabilities, OutputDelta
from jobs.services.runtime import ProviderEntry
from tests.factories import PROVIDER

_LONGEST_S = 20.0


@dataclass
class SpeakingProvider:
    """Says what it is told to say; whoever listens after a place hears what comes after it.

    Attributes:
        resumes_output: Otherwise every listener hears everything, and pieces have no place.
        said: Its pieces so far.
        heard: The places its listeners asked to go on after, in order.
        open_count: Listeners whose iterator was not closed yet.
    """

    resumes_output: bool = True
    said: list[str] = field(default_factory=list)
    heard: list[str | None] = field(default_factory=list)
    open_count: int = 0
    capabilities: Capabilities = field(default_factory=Capabilities)
    _bell: queue.SimpleQueue[Exception | None] = field(default_factory=queue.SimpleQueue)

    def can_follow(self, inputs: Mapping[str, Any]) -> bool:
        """Runs of a model that says nothing are not followed."""
        return inputs.get("model") != "mute"

    def say(self, *pieces: str) -> None:
        """Makes output; a listener under way hears it at once."""
        self.said.extend(pieces)
        self._bell.put(None)

    def end(self, error: Exception | None = None) -> None:
        """Ends the next listener that has heard all, or breaks it off."""
        self._bell.put(error or StopIteration())

    def follow_output(self, provider_job_id: str, *, after: str | None = None) -> Iterator[OutputDelta]:
        """See the port."""
        assert provider_job_id.startswith("p-")
        self.heard.append(after)
        self.open_count += 1
        try:
            yield from self._tell(int(after or 0))
        finally:
            self.open_count -= 1

    def _tell(self, told: int) -> Iterator[OutputDelta]:
        while True:
            for number in range(told + 1, len(self.said) + 1):
                told = number
                yield OutputDelta(self.said[number - 1], str(number) if self.resumes_output else None)
            word = self._bell.get(timeout=_LONGEST_S)
            if isinstance(word, StopIteration):
                return
            if word is not None:
                raise word

    def entry(self, name: str = PROVIDER) -> ProviderEntry:
        """Its entry in a runtime."""
        config = ProviderConfig(
            adapter="simulator", base_url="http://127.0.0.1:1", webhook_scheme="standard-webhooks", webhook_secrets=()
        )
        return ProviderEntry(name, config, Policy(), self)  # type: ignore[arg-type] # only its listening side is asked
