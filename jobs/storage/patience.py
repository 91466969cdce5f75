"""PostgreSQL that has gone silent: frozen, or behind a cable that was cut in the middle of a question.

The server's own limits (``statement_timeout``) need a server that runs, and the kernel's need a peer that is gone; a
machine that is stopped with its connections open meets neither, and a driver waits for its answer for ever. So each
wait of a connection here has an end, and who waited closes the socket. Nobody else is needed for it, no thread and no
signal: psycopg's own waiting comes by every tenth of a second.

After such an end one caller at a time asks again, and the others are refused at once: sixteen threads that wait for
the same silence answer nobody, a provider's webhook least of all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import errors
from sqlalchemy import event
from sqlalchemy.engine import ExceptionContext

from jobs.clock import SystemClock
from jobs.core.errors import Unavailable

#: A database behind a cut cable answers nothing at all: without these a thread would wait for it for hours.
CONNECTION = {
    "application_name": "homing",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds; ignored where the system has no such option
}
# The server has the same trouble with us: a session whose client is gone, and never said so, costs a place.
_THEIR_DEAD_PEERS = {"tcp_keepalives_idle": 10, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 3}

_RETRY_AFTER = timedelta(seconds=2)
_monotonic = SystemClock().monotonic


class Silent(errors.OperationalError):
    """The server said nothing within its time; the connection has been closed."""


def limit_waits(engine: sa.Engine, patience_s: float) -> None:
    """Has every connection of an engine give up on a server that is silent.

    Args:
        engine: Not connected yet.
        patience_s: Longer than the server's own limit on a statement, so that a server which runs speaks first.
    """

    class Patient(psycopg.Connection[Any]):
        def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
            return super().wait(_within(gen, patience_s, close=self.pgconn.finish), *args, **kwargs)

    def connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> psycopg.Connection[Any]:
        return Patient.connect(*arguments, **options)

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "handle_error", _see_ended_session)


def _see_ended_session(context: ExceptionContext) -> None:
    """The server ended a session that lay idle in a transaction: SQLAlchemy takes that for the statement's fault."""
    if isinstance(context.original_exception, errors.IdleInTransactionSessionTimeout):
        context.is_disconnect = True


def _within(
    steps: Generator[Any, Any, Any], patience_s: float, *, close: Callable[[], None]
) -> Generator[Any, Any, Any]:
    """The steps of a conversation, as psycopg's loop takes them; told of no news, looks at the clock.

    Raises:
        Silent: The time is over.
    """
    give_up_at = _monotonic() + patience_s
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and _monotonic() >= give_up_at:
                close()
                raise Silent(f"the server has not answered within {patience_s:g} s")
            wanted = steps.send(ready)
    except StopIteration as end:
        return end.value


def session_options(*, statement: float, lock: float, idle: float) -> str:
    """The server's own limits on a session, as its ``options``, and UTC.

    Args:
        statement: Seconds for a statement.
        lock: Seconds to wait for a lock.
        idle: Seconds between two statements of a transaction; then the session is ended, and its locks with it.
    """
    limits_s = {"statement_timeout": statement, "lock_timeout": lock, "idle_in_transaction_session_timeout": idle}
    limits = {name: f"{limit_s * 1000:.0f}" for name, limit_s in limits_s.items()}
    settings = {**limits, **_THEIR_DEAD_PEERS, "timezone": "UTC"}
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


class Outage:
    """Remembers that a server is silent, until one caller has had an answer."""

    def __init__(self) -> None:
        """All is well."""
        self._is_silent = False
        self._asking = threading.Lock()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """A use of the server.

        Raises:
            Unavailable: It is silent, and somebody else is asking it already.
        """
        if not self._is_silent:
            with self._noting():
                yield
        elif self._asking.acquire(blocking=False):
            try:
                with self._noting(), self._asked():
                    yield
            finally:
                self._asking.release()
        else:
            raise Unavailable("the database does not answer", retry_after=_RETRY_AFTER)

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """It has answered wherever it is not the database that failed: a caller may well refuse what it was told."""
        try:
            yield
        except sa.exc.SQLAlchemyError:
            raise
        except Exception:
            self._is_silent = False
            raise
        self._is_silent = False

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.DBAPIError as error:
            if isinstance(error.orig, Silent | errors.ConnectionTimeout):
                self._is_silent = True
            raise
