"""What a described provider tells of a run while the run makes its output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from jobs.config.mapping.model import Stream
from jobs.core.errors import Permanent, Transient
from jobs.core.observations import Json
from jobs.core.templates import Values
from jobs.net.sse import Message
from jobs.providers.declarative.requests import Requests
from jobs.providers.listening import BROKE_OFF, Listener, json_of, text_of
from jobs.providers.port import Gone, OutputDelta


class OutputStreams:
    """Listens as a mapping says; without that section there is nothing to listen to."""

    def __init__(self, stream: Stream | None, requests: Requests, listener: Listener) -> None:
        """Dials nobody yet."""
        self._stream = stream
        self._requests = requests
        self._listener = listener

    @property
    def resumes(self) -> bool:
        """Whether the id of a message is a place to go on from."""
        return self._stream is not None and self._stream.resumes

    def can_follow(self, inputs: Mapping[str, Json]) -> bool:
        """Whether a run of this input tells its output."""
        stream = self._stream
        return stream is not None and (stream.only_if is None or stream.only_if.is_true(inputs))

    def follow(self, values: Values, *, after: str | None) -> Iterator[OutputDelta]:
        """Yields a run's output; see the port for what it raises.

        Args:
            values: Of the run, by the names templates use.
            after: The place of the last piece that was kept.
        """
        if self._stream is None:
            raise Gone("no stream of this provider is described")
        stream = self._stream
        for message in self._hear(stream, values, after=after if stream.resumes else None):
            if {message.event, message.data} & stream.end:
                return
            if stream.ended_if is not None and stream.ended_if.is_true(json_of(message)):
                return
            text = _text_in(stream, message)
            if text:
                yield OutputDelta(text, message.id if stream.resumes else None)
        raise Transient(BROKE_OFF)

    def _hear(self, stream: Stream, values: Values, *, after: str | None) -> Iterator[Message]:
        try:
            prepared = self._requests.prepare(stream.call, values)
        except Permanent as error:
            raise Gone(f"no run has such an id: {error.detail}") from error
        return replace(self._listener, headers=prepared.headers).hear(prepared.url, after=after)


def _text_in(stream: Stream, message: Message) -> str:
    if stream.event not in (None, message.event):
        return ""
    return text_of(message.data if stream.text is None else stream.text.find(json_of(message)))
