"""Statements on ``output_streams`` and ``job_output``: the text a run tells while it works, and who listens to it.

A stream is due while ``next_read_at`` is set. Every claim writes a fresh token; every later write repeats it, and an
append repeats the length as well, so that a reader that was overtaken writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from jobs.ids import new_token
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.output_schema import job_output, output_streams
from jobs.storage.schema import jobs

_FREE = {"lease_token": None, "lease_until": None}
# Five minutes, of a lease of twenty seconds.
_MOST_DOUBLINGS = 4


def find_stream(tx: Transaction, job_id: str) -> Row | None:
    """A job's stream, where it has one."""
    return tx.row(sa.select(output_streams).where(output_streams.c.job_id == job_id))


def arm_stream(tx: Transaction, *, job_id: str, provider: str, attempt: int) -> None:
    """The run of an attempt is known: its stream is due. An older attempt's text gives way; one under way goes on."""
    known = find_stream(tx, job_id)
    if known is not None and known["attempt"] < attempt:
        renew_stream(tx, job_id, attempt=attempt)
    if known is not None:
        due = sa.and_(output_streams.c.ended_at.is_(None), output_streams.c.next_read_at.is_(None))
        of_attempt = (output_streams.c.job_id == job_id, output_streams.c.attempt == attempt, due)
        tx.execute(sa.update(output_streams).where(*of_attempt).values(next_read_at=tx.now))
        return
    row = {"job_id": job_id, "provider": provider, "attempt": attempt, "generation": 1, "length": 0}
    due_now = {"next_read_at": tx.now, "starts": 0, "tries": 0, "rings": 0, "created_at": tx.now}
    tx.execute(tx.insert(output_streams).values({**row, **due_now}).on_conflict_do_nothing())


def renew_stream(tx: Transaction, job_id: str, *, attempt: int) -> None:
    """Begins anew for another attempt, whose run is not known yet; whoever still reads the old one has lost it."""
    afresh = {"attempt": attempt, "next_read_at": None, "starts": 0, "tries": 0, "ended_at": None, "reason": None}
    older = (output_streams.c.job_id == job_id, output_streams.c.attempt < attempt)
    if tx.execute(sa.update(output_streams).where(*older).values({**afresh, **_FREE, **_next_text()})).rowcount:
        _drop_text(tx, job_id)


def has_due_streams(tx: Transaction) -> bool:
    """Whether any is due and free; costs one look at the index."""
    return tx.row(sa.select(output_streams.c.job_id).where(_is_due(tx.now)).limit(1)) is not None


def claim_streams(tx: Transaction, limit: int, *, lease: timedelta) -> list[tuple[str, str]]:
    """Claims due streams that nobody reads: tenants take turns, the longest due of each first.

    Args:
        tx: The open transaction.
        limit: Streams at most that wait for the reader they were claimed for, those of earlier claims included: a
            queue longer than that would be nobody's turn but the first tenant's.
        lease: How long the first reader called for a stream has to come. The next has twice as long, and so on: where
            all readers are busy, calling again brings none.

    Returns:
        (job id, lease token) of each.
    """
    waiting = sa.select(sa.func.count()).where(output_streams.c.rings > 0, output_streams.c.lease_until > tx.now)
    room = limit - int(tx.execute(waiting).scalar_one())
    if room <= 0:
        return []
    claims = [(row, new_token()) for row in tx.rows(_in_turn(tx.now).limit(room))]
    return [(row["job_id"], token) for row, token in claims if _claim(tx, row, token, lease=lease)]


def _in_turn(now: datetime) -> sa.Select[Any]:
    turn = sa.func.row_number().over(partition_by=jobs.c.tenant, order_by=output_streams.c.next_read_at)
    columns = (output_streams.c.job_id, output_streams.c.rings)
    due = sa.select(*columns).join(jobs, jobs.c.id == output_streams.c.job_id).where(_is_due(now))
    return due.order_by(turn, output_streams.c.next_read_at)


def _claim(tx: Transaction, row: Row, token: str, *, lease: timedelta) -> bool:
    """Of two who claim at once one does."""
    until = tx.now + lease * (1 << min(row["rings"], _MOST_DOUBLINGS))
    taken = {"lease_token": token, "lease_until": until, "rings": output_streams.c.rings + 1}
    free = (output_streams.c.job_id == row["job_id"], _is_due(tx.now))
    return tx.execute(sa.update(output_streams).where(*free).values(taken)).rowcount == 1


def end_unwanted(tx: Transaction, limit: int, *, reason: str, ended_before: datetime) -> int:
    """Ends due streams that nobody reads and nobody waits for: so it is also where no worker reads streams at all."""
    gave_up = sa.and_(jobs.c.finished_at.is_(None), jobs.c.deadline_at <= tx.now)
    unwanted = (
        sa.select(output_streams.c.job_id)
        .join(jobs, jobs.c.id == output_streams.c.job_id)
        .where(_is_due(tx.now), sa.or_(jobs.c.finished_at <= ended_before, gave_up))
        .limit(limit)
    )
    due = (output_streams.c.job_id.in_(unwanted), _is_due(tx.now))
    ended = {**_FREE, "next_read_at": None, "ended_at": tx.now, "reason": reason}
    return tx.execute(sa.update(output_streams).where(*due).values(ended)).rowcount


def take_stream(tx: Transaction, job_id: str, *, held: str | None, until: datetime) -> Row | None:
    """Takes a stream on under a token of its own, and counts the start; None where it is not ours to read.

    Args:
        tx: The open transaction.
        job_id: The job.
        held: The token of the message; None takes a due stream that nobody reads.
        until: When the lease ends.
    """
    mine = _is_due(tx.now)
    if held is not None:
        is_held = (output_streams.c.lease_token == held, output_streams.c.lease_until > tx.now)
        mine = sa.and_(*is_held, output_streams.c.next_read_at.is_not(None))
    taken = {"lease_token": new_token(), "lease_until": until, "starts": output_streams.c.starts + 1, "rings": 0}
    if tx.execute(sa.update(output_streams).where(output_streams.c.job_id == job_id, mine).values(taken)).rowcount != 1:
        return None
    return find_stream(tx, job_id)


def keep_stream(tx: Transaction, stream: Row, *, until: datetime) -> bool:
    """Renews the lease; False where it had been lost."""
    return _write(tx, stream, {"lease_until": until})


def append_output(tx: Transaction, stream: Row, text: str, changes: Mapping[str, Any]) -> bool:
    """Adds text to the end, where the lease is still ours and the end still where we left it; False where not.

    Args:
        tx: The open transaction.
        stream: The row as it was written last.
        text: At least one character.
        changes: Columns that change with it.
    """
    grown = {"length": stream["length"] + len(text), **changes}
    if not _write(tx, stream, grown):
        return False
    key = {"job_id": stream["job_id"], "generation": stream["generation"], "offset": stream["length"]}
    tx.execute(sa.insert(job_output).values(**key, text=text))
    return True


def begin_text_anew(tx: Transaction, stream: Row) -> Row | None:
    """Throws the text away and begins the next generation under the same lease; None where that had been lost."""
    afresh = {"generation": stream["generation"] + 1, "length": 0, "place": None}
    if not _write(tx, stream, afresh):
        return None
    _drop_text(tx, stream["job_id"])
    return {**stream, **afresh}


def rest_stream(tx: Transaction, stream: Row, *, next_read_at: datetime, tries: int) -> bool:
    """Gives the lease back; the reading goes on later. False where it had been lost."""
    return _write(tx, stream, {**_FREE, "starts": 0, "tries": tries, "next_read_at": next_read_at})


def end_stream(tx: Transaction, stream: Row, reason: str) -> bool:
    """Ends the reading for good; False where the lease had been lost."""
    return _write(tx, stream, {**_FREE, "next_read_at": None, "ended_at": tx.now, "reason": reason})


def list_output(tx: Transaction, job_id: str, *, generation: int, offset: int, limit: int) -> list[dict[str, Any]]:
    """Batches of text that reach beyond an offset, in their order.

    Args:
        tx: The open transaction.
        job_id: The job.
        generation: Of its text.
        offset: The end of what is known; somewhere inside a batch as well.
        limit: Batches at most.
    """
    columns = job_output.c
    mine = (columns.job_id == job_id, columns.generation == generation)
    last_begun = sa.select(sa.func.max(columns.offset)).where(*mine, columns.offset <= offset).scalar_subquery()
    beyond = columns.offset >= sa.func.coalesce(last_begun, 0)
    return tx.rows(sa.select(columns.offset, columns.text).where(*mine, beyond).order_by(columns.offset).limit(limit))


def _write(tx: Transaction, stream: Row, changes: Mapping[str, Any]) -> bool:
    premise = (
        output_streams.c.job_id == stream["job_id"],
        output_streams.c.lease_token == stream["lease_token"],
        output_streams.c.generation == stream["generation"],
        output_streams.c.length == stream["length"],
    )
    return tx.execute(sa.update(output_streams).where(*premise).values(dict(changes))).rowcount == 1


def _next_text() -> dict[str, Any]:
    return {"generation": output_streams.c.generation + 1, "length": 0, "place": None}


def _drop_text(tx: Transaction, job_id: str) -> None:
    tx.execute(sa.delete(job_output).where(job_output.c.job_id == job_id))


def _is_due(now: datetime) -> sa.ColumnElement[bool]:
    is_free = sa.or_(output_streams.c.lease_until.is_(None), output_streams.c.lease_until <= now)
    return sa.and_(output_streams.c.next_read_at.is_not(None), output_streams.c.next_read_at <= now, is_free)
