"""One database, two dialects, two kinds of transaction.

``write()`` is the only way to change anything: on SQLite it queues for the writer lock and begins IMMEDIATE, on
PostgreSQL it begins READ COMMITTED. ``Transaction.now`` is the database's clock, so that leases and due times of
several machines compare (SQLite's database lives on this machine, so there it is this machine's clock).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from jobs.clock import Clock, SystemClock
from jobs.core.errors import Unavailable
from jobs.storage.metadata import Instant
from jobs.storage.patience import CONNECTION, Outage, limit_waits, session_options
from jobs.storage.pings import ping_in_doubt
from jobs.storage.unavailable import as_unavailable
from jobs.storage.writer_lock import Holder, WriterLock, find_holder, lock_file

WRITE_TIMEOUT_S = 1.5  # "database down" on SQLite: a write lock not had within this time
# As long as the leases it is used under. Where one ends meanwhile and is taken, the write is refused.
PERSISTENCE = timedelta(seconds=20)
_CONNECT_TIMEOUT_S = 2
#: A statement that takes longer is canceled (PostgreSQL); who may not keep anybody waiting asks for less.
ANSWER_TIMEOUT_S = 30.0
# A row lock held by a stuck session must fail the waiter, not pile up every worker behind it.
_LOCK_TIMEOUT_S = 10.0
# How much later than the server, which could not cancel what it was to, the client gives up.
_SILENCE_S = 0.5
# A transaction of ours lies idle for milliseconds. Where its process was stopped in the middle, or a cable cut, its
# session would keep its locks for as long as TCP hopes (two hours): no longer than the leases, which end as well.
_IDLE_TIMEOUT_S = 15.0

# Stable within its statement, so that an index may be asked for what lies before it: clock_timestamp() is not.
_STATEMENT_NOW = sa.literal_column("(extract(epoch FROM statement_timestamp()) * 1000000)::bigint", Instant())

T = TypeVar("T")


@dataclass(slots=True)
class Transaction:
    """An open transaction: its connection, and its instant."""

    connection: sa.Connection
    clock: Clock
    _now: datetime | None = field(default=None)

    @property
    def now(self) -> datetime:
        """The instant of this transaction by the database's clock, the same at every read."""
        if self._now is None:
            self._now = self._database_now()
        return self._now

    @property
    def known_now(self) -> datetime | None:
        """The same instant where it is at hand; None where the database would have to be asked for it first.

        For a statement that can ask along the way.
        """
        if self._now is None and (self.is_sqlite or not isinstance(self.clock, SystemClock)):
            self._now = self.clock.now()
        return self._now

    @property
    def sql_now(self) -> sa.ColumnElement[datetime]:
        """The instant for the conditions of a first look, which thereby costs no round trip to ask for the time."""
        return _STATEMENT_NOW if self.known_now is None else sa.literal(self.known_now, Instant())

    def _database_now(self) -> datetime:
        if self.known_now is not None:
            return self.known_now
        moment: datetime = self.connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
        return moment.astimezone(UTC)

    def execute(self, statement: sa.Executable, parameters: Any = None) -> sa.CursorResult[Any]:
        """Runs a statement; a list of parameter sets runs it for each."""
        return self.connection.execute(statement, parameters)

    def rows(self, statement: sa.Executable) -> list[dict[str, Any]]:
        """All rows of a query, by column name."""
        result = self.connection.execute(statement)
        names = tuple(result.keys())
        # A mapping per row would be built twice, once by SQLAlchemy: it showed in the drain's profile.
        return [dict(zip(names, row, strict=True)) for row in result]

    def row(self, statement: sa.Executable) -> dict[str, Any] | None:
        """The only row of a query, by column name, or None."""
        found = self.connection.execute(statement).mappings().one_or_none()
        return None if found is None else {**found}

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite."""
        return self.connection.dialect.name == "sqlite"

    def insert(self, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
        """This database's own INSERT: SQLAlchemy's common one knows no ON CONFLICT."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    def allow_idle(self, span: timedelta) -> None:
        """Lets this transaction lie idle for so long, for somebody else's code that runs inside it."""
        if not self.is_sqlite:
            milliseconds = span // timedelta(milliseconds=1)
            self.connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds}")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """A part that can fail alone."""
        with self.connection.begin_nested():
            yield


class Database:
    """An engine and its rules. Create one per process, after any fork."""

    def __init__(self, engine: sa.Engine, *, clock: Clock, lock: WriterLock | None) -> None:
        self.engine = engine
        self.clock = clock
        self._lock = lock
        self._outage = Outage()

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        clock: Clock | None = None,
        pool_size: int = 16,
        write_timeout_s: float = WRITE_TIMEOUT_S,
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> Database:
        """Opens nothing yet; the first transaction does.

        Args:
            url: ``sqlite:///path`` or ``postgresql+psycopg://…``.
            clock: The machine's clock where absent.
            pool_size: Connections kept at most (PostgreSQL).
            write_timeout_s: How long a SQLite writer queues before it raises ``Unavailable``.
            answer_timeout_s: How long PostgreSQL may work on a statement; half a second later it counts as silent.
        """
        chosen = clock or SystemClock()
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite":
            return cls._sqlite(parsed, chosen, write_timeout_s)
        return cls._postgresql(parsed, chosen, pool_size, answer_timeout_s)

    @classmethod
    def _sqlite(cls, url: URL, clock: Clock, write_timeout_s: float) -> Database:
        if not url.database or url.database == ":memory:":
            raise ValueError("a SQLite database of Homing is a file: sqlite:///path/to/homing.db")
        path = Path(url.database)
        path.parent.mkdir(parents=True, exist_ok=True)
        engine = sa.create_engine(
            url, connect_args={"timeout": write_timeout_s, "check_same_thread": False}, pool_size=16, max_overflow=16
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        # The lock's patience is real time: a fake clock would never let it give up.
        lock = WriterLock(lock_file(path), timeout_s=write_timeout_s, monotonic=SystemClock().monotonic)
        return cls(engine, clock=clock, lock=lock)

    @classmethod
    def _postgresql(cls, url: URL, clock: Clock, pool_size: int, answer_timeout_s: float) -> Database:
        options = session_options(statement=answer_timeout_s, lock=_LOCK_TIMEOUT_S, idle=_IDLE_TIMEOUT_S)
        engine = sa.create_engine(
            url,
            pool_size=pool_size,
            max_overflow=4,
            pool_timeout=_CONNECT_TIMEOUT_S,
            connect_args={"options": options, "connect_timeout": _CONNECT_TIMEOUT_S, **CONNECTION},
        )
        limit_waits(engine, answer_timeout_s + _SILENCE_S)
        ping_in_doubt(engine)
        return cls(engine, clock=clock, lock=None)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A transaction that may change things; commits on leaving, rolls back on an error.

        Raises:
            Unavailable: The database cannot be reached or its write lock cannot be had in time.
        """
        with (
            self._lock.hold() if self._lock else nullcontext(),
            as_unavailable(),
            self._outage.watched(),
            self.engine.connect().execution_options(homing_write=True) as connection,
            connection.begin(),
        ):
            yield Transaction(connection, self.clock)

    def insist(self, work: Callable[[Transaction], T], *, within: timedelta = PERSISTENCE) -> T:
        """Runs a write until it is committed, for what has happened already and must not be forgotten.

        The answer of a provider and the end of a handler are facts: a writer that is busy for a moment must not turn
        them into a second request or a second call. Meanwhile the caller's lease must last.

        Args:
            work: What to write; called again from the start, in a new transaction, after each failure.
            within: When to give up, from now.

        Raises:
            Unavailable: The database stayed away.
        """
        for attempt in Retrying(
            retry=retry_if_exception_type(Unavailable),
            stop=stop_after_delay(within),
            wait=wait_exponential(multiplier=0.1, max=2),
            reraise=True,
        ):
            with attempt, self.write() as tx:
                return work(tx)
        raise Unavailable  # never reached: the last failure is raised again

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """A transaction that only reads; never waits for a writer.

        Raises:
            Unavailable: The database cannot be reached.
        """
        with as_unavailable(), self._outage.watched(), self.engine.connect() as connection, connection.begin():
            yield Transaction(connection, self.clock)

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite."""
        return self.engine.dialect.name == "sqlite"

    def find_writer(self) -> Holder | None:
        """Who holds SQLite's writer lock just now; none where it is free, and on PostgreSQL."""
        if not self.is_sqlite:
            return None
        return find_holder(lock_file(Path(str(self.engine.url.database))), monotonic=SystemClock().monotonic)

    def close(self) -> None:
        """Closes every pooled connection."""
        self.engine.dispose()


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, below
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("homing_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
