"""Following a job to its end by the best way there is: its stream, else long polls, else polls that grow rarer.

Each way brings the same versions to the same end; they differ in delay and in requests
(`docs/howto/wait_for_a_job.md`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from homing.client.api import READ_S, ApiClient, job_path
from homing.client.documents import OutputPiece, job_in, output_in
from homing.client.errors import NoStream
from homing.screen import Document
from jobs.clock import Clock, system_rng
from jobs.core.errors import Transient
from jobs.core.states import TERMINAL
from jobs.net.sse import Message

#: How long one request may wait for a change; the server's own limit is no shorter.
_LONG_POLL_S = 30
#: An answer without a change that comes sooner was not waited for: nobody asks faster than backoff then.
_NOT_WAITED_S = 1.0
_FIRST_REST_S = 1.0
_LONGEST_REST_S = 30.0
#: The server writes to a stream every 15 seconds: who hears nothing for longer is behind something that buffers.
SILENCE_S = 20.0
#: How long a fleet that does not answer is asked again: a restart takes seconds.
_PATIENCE_S = 60.0
#: So many long polls or streams that brought nothing, one after the other, and the next way is taken.
_IN_VAIN = 2
#: The type of a stream's first message.
_SNAPSHOT = "snapshot"
#: A stream that lived so long was no failure, whatever it brought.
_LIVED_S = 10.0


@dataclass(slots=True, eq=False)
class Follower:
    """One job, followed once.

    Attributes:
        until: stops then, by the clock's monotonic seconds; None: at the job's end.
        on_output: is told the job's output while it is made, which only streams can.
    """

    api: ApiClient
    job_id: str
    clock: Clock
    until: float | None = None
    on_output: Callable[[OutputPiece], object] | None = None
    _told_chars: int = 0
    _job: Document = field(default_factory=dict)
    _last_id: str | None = None
    _heard: bool = False
    _pause: threading.Event = field(default_factory=threading.Event)

    def changes(self) -> Iterator[Document]:
        """Yield the job now, after every change, and for the last time when it has ended or the time is over."""
        self._job = self.api.get(job_path(self.job_id))
        yield self._job
        yield from self._by_stream()
        yield from self._by_asking()

    # By stream ---------------------------------------------------------------------------------------------

    def _by_stream(self) -> Iterator[Document]:
        in_vain = 0
        while not self._is_over() and in_vain < _IN_VAIN:
            began, seen = self.clock.monotonic(), self._job["version"]
            self._heard = False
            try:
                yield from self._read_stream()
                if not self._is_over():
                    yield from self._ask(wait_s=0)  # it ended: so has the job, or the stream's own time
            except NoStream:
                return
            except Transient:
                if not self._heard:
                    return
            lived = self.clock.monotonic() - began > _LIVED_S
            in_vain = 0 if lived or self._job["version"] != seen else in_vain + 1

    def _read_stream(self) -> Iterator[Document]:
        silence_s = min(SILENCE_S, self._left_s())
        for message in self.api.stream(job_path(self.job_id, "events"), last_id=self._last_id, silence_s=silence_s):
            self._heard = True
            if message is not None:
                yield from self._take(message)
            if self._is_over() or self._left_s() < silence_s:
                return

    def _take(self, message: Message) -> Iterator[Document]:
        self._last_id = message.id or self._last_id
        data = _data_of(message)
        self._tell_output(message, data)
        told = job_in(data)
        if told is None or told["version"] <= self._job["version"]:
            return
        if told["state"] in TERMINAL and message.event == _SNAPSHOT and self.on_output is not None:
            return  # its output comes next, and then its end
        if told["state"] in TERMINAL:
            yield from self._ask(wait_s=0)  # whole, and the same whichever way was taken
        else:
            self._job = {**self._job, **told}
            yield self._job

    def _tell_output(self, message: Message, data: Document) -> None:
        """Hands a piece on. A second snapshot is followed by the whole output once more."""
        piece = output_in(message.event, data)
        if message.event == _SNAPSHOT and self._told_chars:
            piece = OutputPiece("", begins_anew=True)
        if piece is None or self.on_output is None:
            return
        self._told_chars = 0 if piece.begins_anew else piece.offset + len(piece.text)
        self.on_output(piece)

    # By asking ---------------------------------------------------------------------------------------------

    def _by_asking(self) -> Iterator[Document]:
        in_vain, rest_s, heard_at = 0, _FIRST_REST_S, self.clock.monotonic()
        while not self._is_over():
            began, seen = self.clock.monotonic(), self._job["version"]
            try:
                yield from self._ask(wait_s=0 if in_vain >= _IN_VAIN else _LONG_POLL_S)
                heard_at = self.clock.monotonic()
            except Transient:
                if self.clock.monotonic() - heard_at > _PATIENCE_S:
                    raise
                in_vain += 1
            if self._job["version"] != seen:
                rest_s = _FIRST_REST_S
            elif self.clock.monotonic() - began < _NOT_WAITED_S:
                self._rest(rest_s)
                rest_s = min(2 * rest_s, _LONGEST_REST_S)

    def _ask(self, *, wait_s: int) -> Iterator[Document]:
        """The job where it has changed. With `wait_s`, the server may answer later, as soon as it changes."""
        wait_s = int(max(1, min(wait_s, self._left_s()))) if wait_s else 0
        params = {"wait": wait_s, "since": self._job["version"]} if wait_s else None
        job = self.api.get(job_path(self.job_id), params, read_s=wait_s + READ_S, tries=1)
        if job["version"] != self._job["version"]:
            self._job = job
            yield job

    # Time --------------------------------------------------------------------------------------------------

    def _rest(self, rest_s: float) -> None:
        """Jittered, so that many who wait do not ask at one moment."""
        self._pause.wait(min(system_rng().uniform(rest_s / 2, rest_s), max(0.0, self._left_s())))

    def _left_s(self) -> float:
        return float("inf") if self.until is None else self.until - self.clock.monotonic()

    def _is_over(self) -> bool:
        return self._job["state"] in TERMINAL or self._left_s() <= 0


def _data_of(message: Message) -> Document:
    """What a message says; nothing where that is no document."""
    try:
        data = json.loads(message.data)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}
