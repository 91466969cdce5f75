"""Reading server-sent events: bytes as they come, messages as they are complete, never more than a bound in memory.

Source: WHATWG HTML, "Server-sent events", parsing an event stream.

Libraries looked at: ``sseclient-py`` 1.9 keeps an event that never ends in memory, stops at a byte that is no UTF-8,
and hands on an event that the end of the stream cut off; ``httpx-sse`` 0.4 reads httpx's answers only, and
``requests-sse`` 0.5 opens its own connections, past the address guard.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jobs.core.errors import Transient

#: Larger than any message of ours, small enough to be held a few times.
MAX_CHARS = 16 * 1024 * 1024


class MessageTooLarge(Transient):
    """One message, or one line, is larger than is taken."""

    slug = "message-too-large"


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
    """Cuts a stream into messages, wherever the network cut it before. What has no blank line behind it is none."""

    def __init__(self, *, max_chars: int = MAX_CHARS) -> None:
        """Begin a stream.

        Args:
            max_chars: of one message, as far as it has come.
        """
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._max_chars = max_chars
        self._rest: list[str] = []
        self._rest_chars = 0
        self._holds_cr = False
        self._clear()

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """Take the next bytes and yield the messages that they complete.

        Raises:
            MessageTooLarge: nothing can be read any further.
        """
        for line in self._lines(self._decoder.decode(chunk)):
            if line:
                self._read(line)
                continue
            if self._data:
                yield Message(self._event or "message", "\n".join(self._data), self._id)
            self._clear()
        self._check()

    def finish(self) -> Iterator[Message]:
        """The stream has ended: a `\\r` that waited was the end of a line."""
        if self._holds_cr:
            yield from self.feed(b"\n")

    def _clear(self) -> None:
        self._event = ""
        self._id: str | None = None
        self._data: list[str] = []
        self._data_chars = 0

    def _lines(self, text: str) -> Iterator[str]:
        """The lines that are complete. A `\\r` at the very end may be half of a `\\r\\n`: it waits."""
        text = "\r" * self._holds_cr + text
        self._holds_cr = text.endswith("\r")
        *lines, rest = text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if lines:
            lines[0] = "".join([*self._rest, lines[0]])
            self._rest, self._rest_chars = [], 0
            yield from lines
        self._rest.append(rest)
        self._rest_chars += len(rest)

    def _read(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._data_chars += len(value) + 1
            self._check()
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value

    def _check(self) -> None:
        if self._rest_chars + self._data_chars > self._max_chars:
            raise MessageTooLarge(f"a message is larger than {self._max_chars} characters")


def messages(chunks: Iterable[bytes], *, max_chars: int = MAX_CHARS) -> Iterator[Message | None]:
    """Yield messages, and None for every piece that brought none: the other side lives.

    Raises:
        MessageTooLarge: one is larger than `max_chars`.
    """
    parser = Parser(max_chars=max_chars)
    for chunk in chunks:
        brought = False
        for message in parser.feed(chunk):
            brought = True
            yield message
        if not brought:
            yield None
    yield from parser.finish()
