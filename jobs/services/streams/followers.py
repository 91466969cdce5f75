"""Streams of one process: hundreds of followers, one thread that reads for all of them.

The thread asks in one query how far every followed job has come, and reads on only where a follower is behind. A
follower begins with a place it read itself *before* it joined; the thread's next look is after that, so whatever
happened in between is found: nothing can fall between reading and listening. Bells only make it quick.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from jobs.core.cursors import Cursor
from jobs.core.errors import JobsError, Unavailable
from jobs.services.stream_bell import StreamBell
from jobs.services.streams.messages import Message, Place
from jobs.services.streams.reading import News, news
from jobs.storage.database import Database, Transaction
from jobs.storage.following import find_standings
from jobs.storage.jobs import find_job
from jobs.telemetry import SSE_STREAMS

PERIOD = timedelta(milliseconds=500)
_FULL_RETRY = timedelta(seconds=10)
#: A reader this far behind is let go: it resumes where it was, and nobody keeps its messages meanwhile.
_MAX_QUEUED = 100

_log = structlog.get_logger(__name__)


class TooManyStreams(JobsError):
    """One tenant follows as many jobs as one tenant may."""

    status = 429
    slug = "too-many-streams"
    title = "This tenant has too many open streams"


@dataclass(slots=True, eq=False)
class Follower:
    """One open stream."""

    tenant: str
    job_id: str
    place: Place | None = None
    messages: queue.SimpleQueue[Message | None] = field(default_factory=queue.SimpleQueue)

    def next(self, at_most_s: float) -> Message | None:
        """The next message; None where this stream was let go.

        Raises:
            queue.Empty: None came in time.
        """
        return self.messages.get(timeout=at_most_s)

    @property
    def has_room(self) -> bool:
        """Whether it has taken everything it was told: a reader that is behind is not sent text upon text."""
        return self.messages.empty()

    def tell(self, messages: Iterable[Message], place: Place) -> None:
        """Hands on what is new."""
        for message in messages:
            self.messages.put(message)
        self.place = place
        if self.messages.qsize() > _MAX_QUEUED:
            self.let_go()

    def let_go(self) -> None:
        """Ends the stream after what it was told."""
        self.place = None
        self.messages.put(None)


class Streams:
    """The followers of one process, and the one thread that reads for them."""

    def __init__(
        self,
        database: Database,
        bell: StreamBell,
        *,
        seats: int,
        seats_per_tenant: int,
        period: timedelta = PERIOD,
    ) -> None:
        """Starts nothing yet.

        Args:
            database: Where the truth is.
            bell: What the thread waits on between two looks.
            seats: Streams at a time.
            seats_per_tenant: How many of them one tenant may take.
            period: The longest rest between two looks.
        """
        self._database = database
        self._bell = bell
        self._seats = seats
        self._seats_per_tenant = seats_per_tenant
        self._period_s = period.total_seconds()
        self._lock = threading.Lock()
        self._seated: set[Follower] = set()
        self._tenants: Counter[str] = Counter()
        self._is_reading = False

    @property
    def occupied(self) -> int:
        """How many streams are open now."""
        return len(self._seated)

    def enter(self, *, tenant: str, job_id: str) -> Follower:
        """Takes a seat. Whoever does gives it back by :meth:`leave`.

        Raises:
            TooManyStreams: This tenant's seats are taken.
            Unavailable: All are.
        """
        follower = Follower(tenant, job_id)
        with self._lock:
            if self._tenants[tenant] >= self._seats_per_tenant:
                raise TooManyStreams(
                    f"{self._seats_per_tenant} streams at a time; close some, or ask for webhooks",
                    retry_after=_FULL_RETRY,
                )
            if len(self._seated) >= self._seats:
                raise Unavailable("no seat for another stream", retry_after=_FULL_RETRY)
            self._seated.add(follower)
            self._tenants[tenant] += 1
            SSE_STREAMS.inc()
        return follower

    def follow(self, follower: Follower, place: Place) -> None:
        """From now on the follower is told what happens after a place."""
        with self._lock:
            follower.place = place
            if not self._is_reading:
                self._is_reading = True
                threading.Thread(target=self._read, name="stream-reader", daemon=True).start()

    def leave(self, follower: Follower) -> None:
        """Gives the seat back; once is enough, twice does no harm."""
        with self._lock:
            if follower not in self._seated:
                return
            self._seated.remove(follower)
            SSE_STREAMS.dec()
            self._tenants[follower.tenant] -= 1
            if not self._tenants[follower.tenant]:
                del self._tenants[follower.tenant]

    def _read(self) -> None:
        while followed := self._followed():
            try:
                self._look(followed)
            except Unavailable as error:  # the next look may succeed; meanwhile comments keep the streams open
                _log.warning("streams cannot see the database", reason=str(error))
            except Exception:
                self._abandon()
                raise
            self._bell.wait(self._period_s)

    def _followed(self) -> list[Follower]:
        """Who follows; where nobody does, the reading is over, decided under the lock that a newcomer takes."""
        with self._lock:
            followed = [follower for follower in self._seated if follower.place is not None]
            self._is_reading = bool(followed)
            if not followed:
                self._bell.close()
            return followed

    def _look(self, followed: list[Follower]) -> None:
        by_job: dict[str, list[Follower]] = defaultdict(list)
        for follower in followed:
            by_job[follower.job_id].append(follower)
        with self._database.read() as tx:
            standings = find_standings(tx, sorted(by_job))
        for job_id, followers in by_job.items():
            behind = [follower for follower in followers if _is_behind(follower, standings.get(job_id))]
            if behind:
                self._tell(job_id, behind)

    def _tell(self, job_id: str, followers: list[Follower]) -> None:
        """Tells one job's followers; what is wrong with one job ends its own streams and no other."""
        try:
            with self._database.read() as tx:
                _tell_news(tx, job_id, followers)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a row holds, the others' streams go on
            _log.error("a job cannot be streamed", job=job_id, error=f"{type(error).__name__}: {error}")
            _each(followers, Follower.let_go)

    def _abandon(self) -> None:
        """The reader dies of a fault: nobody may wait for it."""
        with self._lock:
            self._is_reading = False
            _each(self._seated, Follower.let_go)


def _tell_news(tx: Transaction, job_id: str, followers: list[Follower]) -> None:
    row = find_job(tx, job_id)
    if row is None:
        _each(followers, Follower.let_go)
        return
    told: dict[tuple[Place, bool], News] = {}
    for follower in followers:
        place, has_room = follower.place, follower.has_room
        assert place is not None, "only who has a place follows"
        if (place, has_room) not in told:
            told[place, has_room] = news(tx, row, place, with_output=has_room)
        found = told[place, has_room]
        follower.tell(found.messages, found.place)


def _is_behind(follower: Follower, standing: Cursor | None) -> bool:
    """Who has not taken the last pieces of output waits for the next: they come together then."""
    cursor = follower.place.cursor if follower.place else None
    if cursor is None or standing is None or follower.has_room:
        return cursor != standing
    return (cursor.sequence, cursor.version) != (standing.sequence, standing.version)


def _each(followers: Iterable[Follower], act: Callable[[Follower], None]) -> None:
    for follower in followers:
        act(follower)
