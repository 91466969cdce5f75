"""A redrive of many letters, as it is asked for, read and ended: :mod:`jobs.services.letters.redriving` works it off.

It is a row: what it may touch, how far it has come, and when its rate allows the next letter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, NamedTuple

import structlog

from jobs.core import instants, text
from jobs.core.errors import Conflict, FieldFault, Unprocessable
from jobs.ids import new_id
from jobs.services.documents import Document
from jobs.services.faults import field_fault
from jobs.services.keys import Principal
from jobs.services.letters.dead_letters import sees_fleet
from jobs.services.paging import page, text_place
from jobs.services.runtime import Runtime
from jobs.storage import redrives
from jobs.storage.database import Database, Transaction
from jobs.storage.jobs import Row
from jobs.storage.letter_filter import LetterFilter
from jobs.telemetry import span

DEFAULT_RATE_PER_S = 10.0
MIN_RATE_PER_S, MAX_RATE_PER_S = 1 / 86_400, 100.0
_KEY = re.compile(r"[\x21-\x7e]{1,255}")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class NewRedrive:
    """What is asked for: which of the open letters, and how many a second."""

    wanted: LetterFilter = field(default_factory=LetterFilter)
    rate_per_s: float = DEFAULT_RATE_PER_S


@dataclass(frozen=True, slots=True)
class Begun:
    """The answer: the redrive, and whether an earlier request had begun it."""

    redrive: Document
    replayed: bool


class _Fitting(NamedTuple):
    """How many open letters fitted at an instant, and the newest of them."""

    at: datetime
    total: int
    last: str | None


class _KeyTaken(Exception):
    """Another transaction took the key between our look and our write."""


def begin_redrive(runtime: Runtime, principal: Principal, body: NewRedrive, *, key: str | None) -> Begun:
    """Writes down a redrive of every open letter that fits now, or finds the one an equal request has begun.

    Raises:
        Unprocessable: The key is malformed, or was used with another body.
        Unavailable: The database did not take it.
    """
    if key is not None and not _KEY.fullmatch(key):
        raise field_fault("Idempotency-Key", "must be 1 to 255 visible ASCII characters")
    with span("begin_redrive", clock=runtime.clock):
        try:
            begun = _begin(runtime, principal, body, key)
        except _KeyTaken:
            begun = _begin(runtime, principal, body, key)
    told = {name: begun.redrive[name] for name in ("id", "total", "rate")}
    _log.info("redrive of many asked for", **told, by=principal.key_id, replayed=begun.replayed)
    return begun


def read_redrive(database: Database, principal: Principal, redrive_id: str) -> Document:
    """One redrive and how far it has come.

    Raises:
        NotFound: There is none, or it is not this reader's.
    """
    with database.read() as tx:
        return redrive_document(_get(tx, principal, redrive_id))


def read_redrives(database: Database, principal: Principal, *, cursor: str | None, limit: int) -> Document:
    """A page of redrives, newest first.

    Raises:
        Unprocessable: The cursor is not one of ours.
    """
    before, fleet = text_place(cursor), sees_fleet(principal)
    with database.read() as tx:
        rows = redrives.list_redrives(tx, tenant=principal.tenant, with_fleet=fleet, before=before, limit=limit + 1)
    return page(rows, limit=limit, place="id", show=redrive_document)


def cancel_redrive(runtime: Runtime, principal: Principal, redrive_id: str) -> Document:
    """Ends a redrive before its end; what it has done stays done.

    Raises:
        NotFound: There is none, or it is not this reader's.
        Conflict: It has ended.
    """
    with runtime.database.write() as tx:
        row = _get(tx, principal, redrive_id, locked=True)
        if not redrives.end(tx, redrive_id, "canceled"):
            raise Conflict(f"redrive {redrive_id} has ended: {row['state']}")
        return redrive_document(_get(tx, principal, redrive_id))


def _begin(runtime: Runtime, principal: Principal, body: NewRedrive, key: str | None) -> Begun:
    print_ = text.fingerprint({"filters": _filters(body.wanted), "rate": body.rate_per_s})
    fleet = sees_fleet(principal)
    with runtime.database.read() as tx:  # a million letters take a second, and no writer may wait for so long
        fitting = _Fitting(tx.now, *redrives.count_letters(tx, body.wanted, tenant=principal.tenant, with_fleet=fleet))
    with runtime.database.write() as tx:
        earlier = redrives.find_by_key(tx, principal.tenant, key, with_fleet=fleet) if key else None
        if earlier is not None:
            return _replay(earlier, print_)
        row = _new_row(principal, body, fitting) | {"idempotency_key": key, "fingerprint": print_}
        if not redrives.insert_redrive(tx, row):
            raise _KeyTaken
        return Begun(redrive_document(_get(tx, principal, row["id"])), replayed=False)


def _replay(earlier: Row, print_: str) -> Begun:
    if earlier["fingerprint"] != print_:
        raise Unprocessable(
            f"this Idempotency-Key was used for another request (redrive {earlier['id']}); take a new key",
            slug="idempotency-key-reused",
            fields=[FieldFault("Idempotency-Key", "was used with another body")],
        )
    return Begun(redrive_document(earlier), replayed=True)


def _new_row(principal: Principal, body: NewRedrive, fitting: _Fitting) -> dict[str, Any]:
    at, total = fitting.at, fitting.total
    work = {"state": "running", "next_at": at} if total else {"state": "done", "finished_at": at}
    return {
        "id": new_id("rd", at=at),
        "tenant": principal.tenant,
        "with_fleet": sees_fleet(principal),
        "asked_by": principal.key_id,
        "filters": _filters(body.wanted),
        "rate_per_s": body.rate_per_s,
        "last_letter": fitting.last,
        "total": total,
        **dict.fromkeys(("redriven", "noop", "failed", "starts"), 0),
        "reasons": {},
        "created_at": at,
        **work,
    }


def _get(tx: Transaction, principal: Principal, redrive_id: str, *, locked: bool = False) -> Row:
    fleet = sees_fleet(principal)
    return redrives.get_redrive(tx, redrive_id, tenant=principal.tenant, with_fleet=fleet, locked=locked)


#: Names of the filters outside, and of their fields.
_FILTERS = {"job": "job_id", "endpoint": "endpoint_id"}
_TIMES = ("since", "until")


def _filters(wanted: LetterFilter) -> dict[str, str]:
    names = {inside: outside for outside, inside in _FILTERS.items()}
    given = {each.name: getattr(wanted, each.name) for each in fields(wanted) if each.name != "is_open"}
    return {
        names.get(name, name): instants.to_text(value) if isinstance(value, datetime) else value
        for name, value in given.items()
        if value is not None
    }


def filter_of(filters: Mapping[str, str]) -> LetterFilter:
    """The stored filters, as a filter."""
    inside: dict[str, Any] = {
        _FILTERS.get(name, name): instants.from_text(value) if name in _TIMES else value
        for name, value in filters.items()
    }
    return LetterFilter(**inside)


def redrive_document(row: Row) -> Document:
    """A redrive of many, as the API shows it."""
    return {
        "id": row["id"],
        "state": row["state"],
        "filters": row["filters"],
        "rate": f"{row['rate_per_s']:g}/s",
        "total": row["total"],
        "done": row["redriven"] + row["noop"] + row["failed"],
        "redriven": row["redriven"],
        "noop": row["noop"],
        "failed": row["failed"],
        "reasons": row["reasons"],
        "error": row["error"],
        "asked_by": row["asked_by"],
        "created_at": instants.to_text(row["created_at"]),
        "finished_at": instants.to_text_or_none(row["finished_at"]),
    }
