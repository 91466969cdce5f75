"""Listening to a run: its pieces are kept in batches, each in one guarded transaction, until the provider is done.

A reader holds the stream's row by a short lease, which every batch renews. It may die at any time: once the lease has
run out a sweep hands the stream to another, which goes on after the last piece that was kept, or, where the provider
cannot do that, begins anew with the first piece it hears. A job never depends on it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from types import TracebackType
from typing import Any, Self

import structlog

from jobs.core.backoff import retry_wait
from jobs.core.errors import JobsError
from jobs.core.states import JobState, is_terminal
from jobs.core.text import clean
from jobs.providers.port import Gone, StreamsOutput
from jobs.services.accounts import budgets
from jobs.services.output.pump import Batch, End, Pump
from jobs.services.output.streams import GRACE, JOB_ENDED, streaming
from jobs.services.runtime import Runtime
from jobs.services.stream_bell import announce
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row, find_job
from jobs.storage.output import (
    append_output,
    begin_text_anew,
    end_stream,
    keep_stream,
    rest_stream,
    take_stream,
)
from jobs.telemetry import OUTPUT_READS, span

#: So long a stream stands still when its reader dies. Short, because each batch renews it.
LEASE = timedelta(seconds=15)
#: A batch is written this long after its first piece, or as soon as it has so many characters.
COLLECT_S, COLLECT_CHARS = 0.15, 8 * 1024
#: The longest text of a job that is kept, in characters; what comes after it is not read.
MAX_CHARS = 1024 * 1024
#: What comes after a job's end is waited for no longer than this, and never longer than the grace.
SILENCE = timedelta(seconds=5)
MAX_STARTS = 3
#: Readings in a row that bring nothing.
MAX_TRIES = 8
_RETRY_BASE, _RETRY_CAP = timedelta(seconds=1), timedelta(seconds=60)
_PAUSED = timedelta(seconds=5)
_KEEP_EVERY_S = 5.0
_IDLE_S = 1.0
_RING_EVERY_S = 0.1
#: A busy database gives up sooner than the lease.
_PATIENCE = timedelta(seconds=8)
#: Batches that one process writes in a second, whatever it listens to: the more streams, the larger their batches.
_COMMITS_PER_S = 50

COMPLETE, GONE, TRUNCATED = "complete", "gone", "truncated"
DEADLINE, UNREADABLE = "deadline", "unreadable"

_log = structlog.get_logger(__name__)


class Came(StrEnum):
    """What came of one message."""

    NOTHING = "nothing"  # not due, or somebody reads it
    ENDED = "ended"
    RETRY = "retry"
    LOST = "lost"  # the lease passed on while we read
    HANDED_OVER = "handed_over"  # this process is asked to end


class _Readings:
    """How many readings there are in this process, and what that means for each."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._count = 0

    @property
    def collect_s(self) -> float:
        return max(COLLECT_S, self._count / _COMMITS_PER_S)

    def __enter__(self) -> Self:
        with self._lock:
            self._count += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._count -= 1


_readings = _Readings()


def hand_over() -> None:
    """Before the end of this process: every reading is given back within a moment, for another process to go on."""
    _readings.stopping.set()


def read_output(runtime: Runtime, job_id: str, lease_token: str | None = None) -> Came:
    """Listens to one run until it has nothing more to say, if that is due and ours to do.

    Args:
        runtime: The process's parts.
        job_id: The job.
        lease_token: Of the claim that sent the message; None: it is claimed here, if it is free and due.

    Raises:
        Unavailable: The database is away; the reading goes on when the lease has ended.
    """
    with span("read_output", clock=runtime.clock, job=job_id):
        reader = _begin(runtime, job_id, lease_token)
        if reader is None:
            return Came.NOTHING
        with _readings:
            came = reader.listen()
        announce(runtime.redis)
        OUTPUT_READS.labels(reader.stream["provider"], str(came)).inc()
        _log.info("output", provider=reader.stream["provider"], result=str(came), length=reader.stream["length"])
        return came


def _begin(runtime: Runtime, job_id: str, lease_token: str | None) -> _Reader | None:
    with runtime.database.write() as tx:
        stream = take_stream(tx, job_id, held=lease_token, until=tx.now + LEASE)
        if stream is None:
            return None
        job = find_job(tx, job_id)
        entry = runtime.providers.get(stream["provider"])
        adapter = streaming(entry)
        if over := _why_over(tx, job, stream) or _why_never(stream, has_run=bool(job and job["provider_job_id"])):
            end_stream(tx, stream, over)
            return None
        # It left the configuration, of this process at least, or nobody may ask it now.
        if adapter is None or entry is None or job is None or not budgets.is_open(tx, entry.name):
            rest_stream(tx, stream, next_read_at=tx.now + _PAUSED, tries=stream["tries"])
            return None
    address = entry.adapter.capabilities.address(job["provider_job_id"], job["input"])
    return _Reader(runtime, adapter, address, stream)


def _why_never(stream: Row, *, has_run: bool) -> str | None:
    return UNREADABLE if stream["starts"] > MAX_STARTS or not has_run else None


def _why_over(tx: Transaction, job: Row | None, stream: Row, *, silence: timedelta = timedelta(0)) -> str | None:
    """Why nobody waits for the text any more; None while somebody may."""
    if job is None or job["attempt"] != stream["attempt"]:
        return JOB_ENDED
    if not is_terminal(JobState(job["state"])):
        return DEADLINE if job["deadline_at"] <= tx.now else None
    ended_for = tx.now - job["finished_at"]
    return JOB_ENDED if ended_for >= GRACE or (min(ended_for, silence) >= SILENCE) else None


@dataclass(slots=True)
class _Reader:
    """One reading under way, and the stream's row as it was written last."""

    runtime: Runtime
    adapter: StreamsOutput
    address: str
    stream: Row
    _begins_anew: bool = field(init=False)
    _heard_at_s: float = field(init=False)
    _kept_at_s: float = field(init=False)
    _rang_at_s: float = field(default=float("-inf"))

    def __post_init__(self) -> None:
        """Sees whether it goes on, or begins at the beginning: then what was kept gives way to the first new piece."""
        goes_on = self.adapter.resumes_output and self.stream["place"] is not None
        self._begins_anew = not goes_on and self.stream["length"] > 0
        self._heard_at_s = self._kept_at_s = self._now_s()

    def listen(self) -> Came:
        """Reads to the end of it, whatever that is."""
        after = None if self._begins_anew else self.stream["place"]
        pump = Pump(lambda: self.adapter.follow_output(self.address, after=after), most_chars=MAX_CHARS)
        pump.start()
        try:
            while True:
                batch = pump.take(idle_s=_IDLE_S, collect_s=_readings.collect_s, most_chars=COLLECT_CHARS)
                came = self._take(batch)
                if came is not None:
                    return came
        finally:
            pump.stop()

    def _take(self, batch: Batch) -> Came | None:
        """One round: what came is kept, or the lease; then the end, if this was it."""
        came: Came | None = None
        if batch.text:
            self._heard_at_s = self._now_s()
            came = self._write(lambda tx: self._append(tx, batch))
            self._ring()
        elif batch.end is None and self._now_s() - self._kept_at_s >= _KEEP_EVERY_S:
            came = self._write(self._keep)
        if came is None and batch.end is not None:
            end = batch.end
            return self._write(lambda tx: self._finish(tx, end))
        if came is None and _readings.stopping.is_set():
            return self._write(self._hand_over)
        return came

    def _write(self, work: Callable[[Transaction], tuple[Came | None, Row]]) -> Came | None:
        came, self.stream = self.runtime.database.insist(work, within=_PATIENCE)
        self._kept_at_s = self._now_s()
        return came

    # Each in one transaction, repeatable: what came of it, and the row afterwards --------------------------

    def _append(self, tx: Transaction, batch: Batch) -> tuple[Came | None, Row]:
        stream: Row | None = self.stream
        if over := _why_over(tx, find_job(tx, self.stream["job_id"]), self.stream):
            return self._end(tx, self.stream, over)
        if self._begins_anew:
            stream = begin_text_anew(tx, self.stream)
        if stream is None:
            return Came.LOST, self.stream
        text = clean(batch.text)[: MAX_CHARS - stream["length"]]
        changes = {"place": batch.place, "lease_until": tx.now + LEASE, **self._counters()}
        if text and not append_output(tx, stream, text, changes):
            return Came.LOST, stream
        stream = {**stream, **changes, "length": stream["length"] + len(text)}
        if len(text) < len(batch.text):
            return self._end(tx, stream, TRUNCATED)
        return None, stream

    def _keep(self, tx: Transaction) -> tuple[Came | None, Row]:
        silence = timedelta(seconds=self._now_s() - self._heard_at_s)
        if over := _why_over(tx, find_job(tx, self.stream["job_id"]), self.stream, silence=silence):
            return self._end(tx, self.stream, over)
        return (None if keep_stream(tx, self.stream, until=tx.now + LEASE) else Came.LOST), self.stream

    def _finish(self, tx: Transaction, end: End) -> tuple[Came, Row]:
        if end.error is None or isinstance(end.error, Gone):
            return self._end(tx, self.stream, COMPLETE if end.error is None else GONE)
        tries = self.stream["tries"] + 1
        words = _words(end.error)
        _log.info("output broke off", tries=tries, error=words)
        if tries >= MAX_TRIES:
            return self._end(tx, self.stream, f"{words} (after {tries} tries)")
        asked = end.error.retry_after if isinstance(end.error, JobsError) else None
        wait = retry_wait(tries, base=_RETRY_BASE, cap=_RETRY_CAP, rng=self.runtime.rng)
        due_at = tx.now + max(wait, asked or timedelta(0))
        kept = rest_stream(tx, self.stream, next_read_at=due_at, tries=tries)
        return (Came.RETRY if kept else Came.LOST), self.stream

    def _hand_over(self, tx: Transaction) -> tuple[Came, Row]:
        rest_stream(tx, self.stream, next_read_at=tx.now, tries=self.stream["tries"])
        return Came.HANDED_OVER, self.stream

    def _end(self, tx: Transaction, stream: Row, reason: str) -> tuple[Came, Row]:
        return (Came.ENDED if end_stream(tx, stream, reason) else Came.LOST), stream

    def _counters(self) -> Mapping[str, Any]:
        """What was heard counts only where it is not heard again: else a stream could begin anew for ever."""
        return {"starts": 0, "tries": 0} if self.adapter.resumes_output else {}

    def _ring(self) -> None:
        self._begins_anew = False
        if self._now_s() - self._rang_at_s >= _RING_EVERY_S:
            self._rang_at_s = self._now_s()
            announce(self.runtime.redis)

    def _now_s(self) -> float:
        return self.runtime.clock.monotonic()


def _words(error: Exception) -> str:
    """An adapter's defect is told by its kind alone."""
    detail = error.detail if isinstance(error, JobsError) else ""
    return clean(detail)[:500] or type(error).__name__
