"""A load generator of our own, in a process of its own: ``python -m benchmarks.generator FILE URL …``.

Closed loop (``--connections N``): as many requests under way as connections; used where wrk is not installed.
Open loop (``--rate R``): requests leave on time, answered or not, so that a queue shows in the latency.
Prints one JSON line. ``--log`` writes when each request was meant to leave, in the order of the file.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.signing import Signed
from benchmarks.statistics import percentile

_OPEN_CONNECTIONS = 64


def read_requests(path: Path, target: str) -> list[bytes]:
    """Requests as they go over the wire."""
    lines = path.read_text(encoding="ascii").splitlines()
    return [_wire(Signed(*line.split("\t")), target) for line in lines]


def _wire(signed: Signed, target: str) -> bytes:
    headers = "".join(f"{name}: {value}\r\n" for name, value in signed.headers.items())
    length = len(signed.body.encode())
    return (
        f"POST {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n{headers}content-length: {length}\r\n\r\n{signed.body}".encode()
    )


class _Connection:
    """One keep-alive connection; knows just enough HTTP for our own servers' answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, host: str, port: int) -> _Connection:
        return cls(*await asyncio.open_connection(host, port))

    async def send(self, request: bytes) -> int:
        """Sends a request, reads its answer, returns the status."""
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        await self._reader.readexactly(length)
        return int(head[9:12])


class Load:
    """What is sent, and what came of it."""

    def __init__(self, requests: list[bytes], connections: list[_Connection]) -> None:
        self._requests = requests
        self._connections = connections
        self.spans_s: list[float] = []
        self.left_at: list[float] = []
        self.failed = 0

    async def closed(self, *, seconds: float) -> None:
        """Each connection sends its next request when the last one is answered."""
        endless = itertools.cycle(self._requests)
        end = time.perf_counter() + seconds
        await asyncio.gather(*(self._keep_sending(connection, endless, end) for connection in self._connections))

    async def _keep_sending(self, connection: _Connection, requests: Iterator[bytes], end: float) -> None:
        while (begin := time.perf_counter()) < end:
            await self._send(connection, next(requests), begin)

    async def open(self, *, rate: float) -> None:
        """All requests once, at their times; the latency of one that found no free connection includes the wait."""
        free: asyncio.Queue[_Connection] = asyncio.Queue()
        for connection in self._connections:
            free.put_nowait(connection)
        begin, wall = time.perf_counter(), time.time()
        async with asyncio.TaskGroup() as group:
            for number, request in enumerate(self._requests):
                due = begin + number / rate
                self.left_at.append(wall + number / rate)
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                group.create_task(self._send_over(free, request, due))

    async def _send_over(self, free: asyncio.Queue[_Connection], request: bytes, due: float) -> None:
        connection = await free.get()
        await self._send(connection, request, due)
        free.put_nowait(connection)

    async def _send(self, connection: _Connection, request: bytes, begin: float) -> None:
        status = await connection.send(request)
        self.spans_s.append(time.perf_counter() - begin)
        self.failed += not 200 <= status < 300


async def _run(options: argparse.Namespace) -> Load:
    url = urlsplit(options.url)
    count = options.connections or _OPEN_CONNECTIONS
    connections = [await _Connection.open(url.hostname or "", url.port or 80) for _ in range(count)]
    load = Load(read_requests(options.file, url.path), connections)
    if options.rate:
        await load.open(rate=options.rate)
    else:
        await load.closed(seconds=options.seconds)
    return load


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("url")
    parser.add_argument("--connections", type=int)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    begin = time.perf_counter()
    load = asyncio.run(_run(options))
    seconds = time.perf_counter() - begin
    if options.log:
        options.log.write_text("".join(f"{at:.6f}\n" for at in load.left_at))
    spans_ms = [span * 1e3 for span in load.spans_s]
    report = {"requests": len(spans_ms), "seconds": seconds, "failed": load.failed}
    print(json.dumps({**report, "p50_ms": percentile(spans_ms, 0.5), "p99_ms": percentile(spans_ms, 0.99)}))


if __name__ == "__main__":
    main()
