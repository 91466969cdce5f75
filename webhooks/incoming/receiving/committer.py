"""Group commit: one thread per process stores whatever waits, in one transaction, and releases each caller with its
own outcome.

A batch is what came while the last one was being committed, so a lone event waits for nobody and a burst shares its
commits. Those released come back: while more keep coming, a batch is held open until it is as large as the last one
and what waited for it, for else each half of them would always just miss the other's. The thread starts at the first
event, in whichever process that is, so a fork is harmless.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import structlog

from jobs.core.errors import JobsError, Unavailable
from webhooks.incoming.events import NewEvent, Stored
from webhooks.incoming.receiving.seen import SeenEvents
from webhooks.incoming.schema import InboxStatus
from webhooks.incoming.wording import describe, traceback_of

Store = Callable[[Sequence[NewEvent]], list[Stored]]
CountCopies = Callable[[Mapping[str, int]], dict[str, int]]

#: A provider is told to come again before it gives up on us; with parsing and answering it stays within 2 s.
CALLER_WAIT = timedelta(seconds=1.8)
_RETRY_AFTER = timedelta(seconds=5)
_MAX_BATCH = 256
_MAX_BATCH_BYTES = 16 * 2**20
#: Who does not come within this time of the one before is not waited for.
GATHERING_PAUSE = timedelta(milliseconds=0.5)
#: How long repeats alone wait to be counted together. Nobody waits for them.
_COUNTING_PAUSE_S = 0.2
_MAX_COUNTED_ROWS = 10_000  # repeats of busy rows are remembered, not for ever

_log = structlog.get_logger(__name__)


class _Caller:
    """Somebody who waits for an event to be committed."""

    __slots__ = ("_done", "error", "event", "stored")

    def __init__(self, event: NewEvent) -> None:
        self.event = event
        self.stored: Stored | None = None
        self.error: JobsError | None = None
        self._done = threading.Lock()  # held until then: an Event costs several of them
        self._done.acquire()

    def release(self, *, stored: Stored | None = None, error: JobsError | None = None) -> None:
        self.stored, self.error = stored, error
        self._done.release()

    def wait(self, timeout_s: float) -> bool:
        return self._done.acquire(timeout=timeout_s)


class Committer:
    """Stores events in groups. Thread-safe; one per process."""

    def __init__(
        self,
        store: Store,
        *,
        count_copies: CountCopies,
        on_commit: Callable[[], None],
        caller_wait: timedelta = CALLER_WAIT,
        gathering_pause: timedelta = GATHERING_PAUSE,
    ) -> None:
        """Starts nothing yet.

        Args:
            store: Commits a batch and says what became of each event, in order; may raise.
            count_copies: Counts acknowledged repeats by row; returns what it could not count yet.
            on_commit: Called after a commit that left work to do; must neither wait nor raise.
            caller_wait: How long :meth:`submit` waits at most.
            gathering_pause: How long an open batch waits for the next event, while it is smaller than expected.
        """
        self._store = store
        self._count_copies = count_copies
        self._on_commit = on_commit
        self._caller_wait_s = caller_wait.total_seconds()
        self._gathering_pause_s = gathering_pause.total_seconds()
        self._reset()
        forget = weakref.WeakMethod(self._reset)
        os.register_at_fork(after_in_child=lambda: _call(forget))

    def _reset(self) -> None:
        """A child of a fork inherits neither the thread nor those who wait, and perhaps a lock that is held."""
        self._seen = SeenEvents()
        self._condition = threading.Condition()
        self._queue: deque[_Caller] = deque()
        self._copies: Counter[str] = Counter()
        self._thread: threading.Thread | None = None
        self._expected = 1  # callers of the next batch
        self._is_stopping = False
        self._is_busy = False
        self._is_held_up = False

    def submit(self, event: NewEvent) -> Stored:
        """Stores one event; returns after its commit.

        Raises:
            Unavailable: It was not committed in time. It may be later, which is harmless: the provider sends it
                again and meets it as a repeat. While a commit holds everybody up, at once: each who waited for it
                would hold a server thread, and whoever came behind them would not be answered in time.
        """
        repeated = self._seen.find_repeated(event)
        if repeated is not None:
            self._note_copy(repeated.id)
            return Stored("duplicate", repeated.id, repeated, is_new=False)
        caller = _Caller(event)
        with self._condition:
            if self._is_held_up:
                raise Unavailable("a commit is taking too long", retry_after=_RETRY_AFTER)
            self._queue.append(caller)
            self._wake(is_needed=len(self._queue) == 1 or len(self._queue) >= self._expected)
        if not caller.wait(self._caller_wait_s):
            self._withdraw(caller)
            raise Unavailable("the event was not stored in time", retry_after=_RETRY_AFTER)
        if caller.stored is None:
            raise caller.error or Unavailable(retry_after=_RETRY_AFTER)
        return caller.stored

    def stop(self) -> None:
        """Commits what waits, then ends the thread; the next event would start another."""
        with self._condition:
            thread, self._is_stopping = self._thread, True
            self._condition.notify_all()
        if thread is not None:
            thread.join()
        with self._condition:
            self._thread, self._is_stopping = None, False

    def _note_copy(self, event_id: str) -> None:
        with self._condition:
            self._copies[event_id] += 1
            self._wake(is_needed=len(self._copies) == 1)

    def _wake(self, *, is_needed: bool) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="inbox-committer", daemon=True)
            self._thread.start()
        if is_needed:
            self._condition.notify()

    def _withdraw(self, caller: _Caller) -> None:
        with self._condition:
            self._is_held_up = self._is_busy
            if caller in self._queue:
                self._queue.remove(caller)

    def _run(self) -> None:
        busy: dict[str, int] = {}
        while True:
            with self._condition:
                self._gather()
                callers, copies = self._take(), self._copies
                if self._is_stopping and not callers and not copies:
                    break  # for no other reason: who came between a last look and the thread's end would wait in vain
                self._copies, self._is_busy = Counter(), True
            try:
                self._commit(callers)
                copies.update(busy)
                busy = self._count(copies)
            finally:
                with self._condition:
                    self._is_busy = self._is_held_up = False
        self._count(Counter(busy))  # whoever held those rows has had the time since

    def _gather(self) -> None:
        """Waits for something to do, and then for those who are about to come; the lock is held."""
        self._condition.wait_for(lambda: self._queue or self._copies or self._is_stopping)
        if not self._queue:
            self._condition.wait_for(lambda: self._queue or self._is_stopping, timeout=_COUNTING_PAUSE_S)
        before = 0
        while before < len(self._queue) < self._expected and not self._is_stopping:
            before = len(self._queue)
            self._condition.wait(self._gathering_pause_s)

    def _take(self) -> list[_Caller]:
        taken: list[_Caller] = []
        size_bytes = 0
        while self._queue and len(taken) < _MAX_BATCH and size_bytes < _MAX_BATCH_BYTES:
            caller = self._queue.popleft()
            size_bytes += len(caller.event.raw)
            taken.append(caller)
        self._expected = max(1, len(taken))
        return taken

    def _commit(self, callers: Sequence[_Caller]) -> None:
        if not callers:
            return
        try:
            outcomes = self._store([caller.event for caller in callers])
        except Unavailable as error:
            _refuse(callers, error)
        except Exception as error:  # noqa: BLE001 - one bad row must not fail its neighbours: each is tried alone
            _log.warning("events could not be stored together; storing them one by one", error=describe(error))
            for caller in callers:
                self._commit_alone(caller)
        else:
            self._release(callers, outcomes)

    def _commit_alone(self, caller: _Caller) -> None:
        try:
            outcomes = self._store([caller.event])
        except Exception as error:  # noqa: BLE001 - the thread serves the others; this one's sender is told to retry
            _refuse([caller], error)
            about = {"provider": caller.event.provider, "error": describe(error)}
            _log.error("an event could not be stored", **about, **traceback_of(error))
        else:
            self._release([caller], outcomes)

    def _release(self, callers: Sequence[_Caller], outcomes: Sequence[Stored]) -> None:
        self._expected = min(len(callers) + len(self._queue), _MAX_BATCH)  # before any of them can have come back
        for caller, stored in zip(callers, outcomes, strict=True):
            if stored.known is not None:
                self._seen.add(caller.event.key, stored.known)
            caller.release(stored=stored)
        if any(stored.is_new and stored.status == InboxStatus.ACCEPTED for stored in outcomes):
            self._on_commit()

    def _count(self, copies: Counter[str]) -> dict[str, int]:
        """Counts repeats nobody waits for; returns those to be counted with the next."""
        if not copies:
            return {}
        try:
            return self._count_copies(copies)
        except Exception as error:  # noqa: BLE001 - a lost count is a lesser evil than a lost committer
            _log.warning("repeats could not be counted yet", error=describe(error), **traceback_of(error))
            return dict(copies.most_common(_MAX_COUNTED_ROWS))


def _refuse(callers: Sequence[_Caller], error: Exception) -> None:
    reason = error.detail if isinstance(error, Unavailable) else "the event could not be stored"
    for caller in callers:
        caller.release(error=Unavailable(reason, retry_after=_RETRY_AFTER))


def _call(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    bound = method()
    if bound is not None:
        bound()
