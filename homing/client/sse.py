"""Reading server-sent events: bytes as they come, messages as they are complete.

Source: WHATWG HTML, "Server-sent events", parsing an event stream.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a stream.

    Attributes:
        event: its type; `message` where the stream named none.
        data: its text.
        id: where to resume after it; None where it has no id of its own.
    """

    event: str
    data: str
    id: str | None


class Parser:
    """Cuts a stream into messages, wherever the network cut it before."""

    def __init__(self) -> None:
        """Begin a stream."""
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = ""
        self._event = ""
        self._id: str | None = None
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """Take the next bytes and yield the messages that they complete."""
        self._rest += self._decoder.decode(chunk)
        for line in self._lines():
            if line:
                self._read(line)
            elif self._data:
                yield Message(self._event or "message", "\n".join(self._data), self._id)
            if not line:
                self._event, self._id, self._data = "", None, []

    def _lines(self) -> Iterator[str]:
        """The lines that are complete. A `\\r` at the very end may be half of a `\\r\\n`: it waits."""
        held = self._rest.endswith("\r")
        text = self._rest[:-1] if held else self._rest
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = rest + "\r" * held
        yield from lines

    def _read(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value


def messages(chunks: Iterable[bytes]) -> Iterator[Message | None]:
    """Yield messages, and None for every piece that brought none: the other side lives."""
    parser = Parser()
    for chunk in chunks:
        found: list[Message | None] = [*parser.feed(chunk)]
        yield from found or [None]
