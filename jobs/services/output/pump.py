"""Pulls a provider's pieces in a thread of its own, so that waiting for the next one holds up no write."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jobs.clock import SystemClock
from jobs.core.errors import Transient
from jobs.providers.port import OutputDelta

#: Pieces that wait to be written; beyond them the provider is read no further, and its own window fills up.
_MOST_WAITING = 500
_LOOK_UP_S = 0.5


@dataclass(frozen=True, slots=True)
class End:
    """The provider's last word: None where it said that this was all."""

    error: Exception | None


@dataclass(frozen=True, slots=True)
class Batch:
    """What came together.

    Attributes:
        text: All of it; empty where nothing came in time.
        place: The provider's mark after it.
        end: What came after it, where something ended the reading.
    """

    text: str
    place: str | None
    end: End | None = None


class Pump:
    """One reading. A thread that waits for a silent provider cannot be stopped; it is left to its time-outs."""

    def __init__(self, follow: Callable[[], Iterator[OutputDelta]], *, most_chars: int) -> None:
        """Connects to nothing yet.

        Args:
            follow: Opens the provider's stream.
            most_chars: What is kept of it, in characters. It is read no further than the piece that goes beyond.
        """
        self._follow = follow
        self._most_chars = most_chars
        self._pieces: queue.Queue[OutputDelta | End] = queue.Queue(_MOST_WAITING)
        self._stopped = threading.Event()
        self._monotonic = SystemClock().monotonic  # real time, also under a fake clock: the provider's is real

    def start(self) -> None:
        """Begins to read."""
        threading.Thread(target=self._pull, name="output-pump", daemon=True).start()

    def stop(self) -> None:
        """Ends the reading after the piece under way; its thread closes the connection."""
        self._stopped.set()

    def take(self, *, idle_s: float, collect_s: float, most_chars: int) -> Batch:
        """The next pieces, together.

        Args:
            idle_s: How long to wait for a first one.
            collect_s: How long to wait for more after it.
            most_chars: Enough; what is there already is not waited for any longer.
        """
        texts: list[str] = []
        chars, place, until_s = 0, None, self._monotonic() + idle_s
        while chars < most_chars:
            piece = self._next(until_s - self._monotonic())
            if piece is None or isinstance(piece, End):
                return Batch("".join(texts), place, piece)
            if not texts:
                until_s = self._monotonic() + collect_s
            texts.append(piece.text)
            chars, place = chars + len(piece.text), piece.place
        return Batch("".join(texts), place)

    def _next(self, at_most_s: float) -> OutputDelta | End | None:
        try:
            return self._pieces.get(timeout=max(at_most_s, 0.0))
        except queue.Empty:
            return None

    def _pull(self) -> None:
        end = End(Transient("the reading broke off"))
        try:
            self._pull_all()
            end = End(None)
        except Exception as error:  # noqa: BLE001 - handed to the reader, which judges it
            end = End(error)
        finally:
            self._put(end)

    def _pull_all(self) -> None:
        pieces, chars = self._follow(), 0
        try:
            for piece in pieces:
                self._put(piece)
                chars += len(piece.text)
                if self._stopped.is_set() or chars > self._most_chars:
                    return
        finally:
            close = getattr(pieces, "close", None)  # generators have it, other iterators need not
            if close is not None:
                close()

    def _put(self, piece: OutputDelta | End) -> None:
        while not self._stopped.is_set():
            try:
                self._pieces.put(piece, timeout=_LOOK_UP_S)
            except queue.Full:
                continue
            return
