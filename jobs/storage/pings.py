"""Whether a pooled connection to PostgreSQL still lives, asked only where there is doubt: it is a round trip.

A server that stops, or is stopped, closes its sockets, which is seen here without asking it. What goes without a word
(a machine without power, a cut cable) shows only in a question, so what has rested is asked before it is used.
"""

from __future__ import annotations

import select
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import InvalidatePoolError

from jobs.clock import SystemClock

#: A connection that was in use until just now is believed to live.
_BELIEVED_S = 1.0
_RESTS_SINCE = "homing_rests_since"
_monotonic = SystemClock().monotonic


def ping_in_doubt(engine: sa.Engine) -> None:
    """Has an engine replace its dead connections before they are used.

    Args:
        engine: Of PostgreSQL.
    """

    def on_return(_connection: Any, record: Any) -> None:
        record.info[_RESTS_SINCE] = _monotonic()

    def on_use(connection: psycopg.Connection[Any], record: Any, _fairy: Any) -> None:
        rests_since = record.info.get(_RESTS_SINCE)
        if rests_since is None or not _is_in_doubt(connection, rested_s=_monotonic() - rests_since):
            return
        try:
            engine.dialect.do_ping(connection)  # type: ignore[arg-type] # psycopg's own is what it was written for
        except psycopg.Error as error:
            raise InvalidatePoolError from error  # the pool connects anew, and believes none of the others either

    event.listen(engine, "checkin", on_return)
    event.listen(engine, "checkout", on_use)


def _is_in_doubt(connection: psycopg.Connection[Any], *, rested_s: float) -> bool:
    return rested_s > _BELIEVED_S or connection.closed or _has_news(connection.fileno())


def _has_news(socket: int) -> bool:
    """Whether something came unasked: most likely the end."""
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))
