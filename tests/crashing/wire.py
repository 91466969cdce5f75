"""A wire between the fleet and a service, which can be slow, cut, refused, or swallow what it is given."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass
from enum import Enum

_CHUNK_BYTES = 64 * 1024


class Mode(Enum):
    """How the wire behaves."""

    GOOD = "good"
    SLOW = "slow"  # each piece waits on its way
    REFUSING = "refusing"  # whoever connects is hung up on
    SWALLOWING = "swallowing"  # half open: takes everything, delivers nothing, says nothing


@dataclass(slots=True)
class _State:
    mode: Mode = Mode.GOOD
    delay_s: float = 0.0


class Wire:
    """Listens on a port of its own and joins each caller to the service behind."""

    def __init__(self, *, listen: int, target: int) -> None:
        self.port = listen
        self._target = target
        self._state = _State()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wire", daemon=True)
        self._thread.start()
        self._ready.wait()

    def set(self, mode: Mode, *, delay_s: float = 0.0) -> None:
        """Changes how it behaves, for open connections and new ones."""
        self._state.mode, self._state.delay_s = mode, delay_s

    def cut(self) -> None:
        """Hangs up on everybody."""
        self._loop.call_soon_threadsafe(self._abort_all)

    def heal(self, *, cut: bool) -> None:
        """Behaves again. What was swallowed is lost, so those connections must end in the same moment."""
        self._loop.call_soon_threadsafe(self._heal, cut)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._join, "127.0.0.1", self.port))
        self._ready.set()
        self._loop.run_forever()
        server.close()
        self._abort_all()
        self._loop.run_until_complete(self._end())

    async def _end(self) -> None:
        """Whoever is in the middle of a piece is called off; their sockets close with them."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _heal(self, cut: bool) -> None:
        self.set(Mode.GOOD)
        if cut:
            self._abort_all()

    def _abort_all(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._state.mode is Mode.REFUSING:
            writer.transport.abort()
            return
        self._writers.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
        else:
            self._writers.add(far_writer)
            await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))
            self._writers.discard(far_writer)
        finally:
            self._writers.discard(writer)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while piece := await reader.read(_CHUNK_BYTES):
                if self._state.mode is Mode.SWALLOWING:
                    continue
                if self._state.mode is Mode.SLOW:
                    await asyncio.sleep(self._state.delay_s)
                writer.write(piece)
                await writer.drain()
        if self._state.mode is not Mode.SWALLOWING:
            writer.close()
