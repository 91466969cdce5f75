"""The dead man's switch outside: a URL that is asked for while sweeps are good, and raises the alarm when it is not."""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog

from jobs.core.errors import Transient, UnknownOutcome
from jobs.net.http import Bounds, HttpClient
from jobs.storage.counters import raise_counter
from jobs.storage.database import Database
from jobs.storage.metadata import to_microseconds

EVERY = timedelta(minutes=1)
_COUNTER = "ping_minute"  # the last minute in which somebody pinged
_BOUNDS = Bounds(connect_s=2.0, read_s=3.0, total_s=5.0, max_bytes=64 * 1024)
_log = structlog.get_logger(__name__)


def is_ping_due(database: Database) -> bool:
    """Claims this minute's ping; True for one process of the fleet only."""
    with database.write() as tx:
        return raise_counter(tx, _COUNTER, _minute(tx.now))


def ping(url: str, *, client: HttpClient | None = None) -> bool:
    """Asks for the URL once, within 5 s. Call it outside any transaction.

    Returns:
        Whether the other side took notice.
    """
    chosen = client or HttpClient(_BOUNDS)
    try:
        answer = chosen.request("GET", url)
    except (Transient, UnknownOutcome) as error:
        _log.warning("heartbeat URL not reached", reason=str(error))
        return False
    finally:
        if client is None:
            chosen.close()
    if not answer.is_success:
        _log.warning("heartbeat URL refused", status=answer.status)
    return answer.is_success


def _minute(now: datetime) -> int:
    return to_microseconds(now) // (EVERY // timedelta(microseconds=1))
