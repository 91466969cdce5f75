"""Sections of a mapping that are requests: submit, search, status, cancel, stream."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, cast

from jobs.config.mapping.calls import header_fault, read_call, read_calls
from jobs.config.mapping.model import Cancel, Idempotency, Search, Status, Stream, Submit, reads
from jobs.config.mapping.shapes import fold, read_shape
from jobs.config.mapping.table import Table
from jobs.core.queries import Query

_DEFAULT_WINDOW = timedelta(hours=24)
_LOST = frozenset({404, 410})
_TOO_LATE = frozenset({409})


def read_submit(table: Table) -> Submit | None:
    """Read `[….submit]`."""
    call, run = read_call(table), table.query("id")
    table.need("id", what="a JMESPath expression that finds the run's id in the answer")
    idempotency = _read_idempotency(table)
    refused_if, error, address = table.query("refused_if"), table.query("error"), table.text("address")
    table.end()
    if call is None or run is None:
        return None
    if idempotency is not None and idempotency.header is None and ("attempt", "key") not in reads(call):
        table.fault("idempotency.header", "is missing: name the header, or send ${attempt.key} in a template")
    return Submit(call, run, idempotency, refused_if, error, address)


def read_search(table: Table) -> Search | None:
    """Read `[….search]`."""
    calls, run = read_calls(table), table.query("id")
    table.need("id", what="a JMESPath expression that finds the runs' ids")
    items, match = table.query("items"), table.query("match")
    equals, contains = table.template("equals"), table.template("contains")
    table.end()
    if match is not None:
        table.need("items", what="match looks through a list; say where it is")
    if (match is None) is not (equals is None and contains is None):
        table.faults.append(f"{table.where} must hold match together with equals or contains")
    return Search(calls, run, items, match, equals, contains) if calls and run else None


def read_status(table: Table, *, urls: Query | None) -> Status | None:
    """Read `[….status]`; `urls` is where a run's result files are."""
    call, run = read_call(table), table.query("id")
    shape = read_shape(table, urls=urls)
    gone, words = _read_gone(table)
    min_interval = table.duration("min_interval") or timedelta(0)
    table.end()
    if call is None or shape is None:
        return None
    for word in sorted(words & set(shape.states)):
        table.fault("gone", f"names {word!r}, which is also a word of states")
    return Status(call, shape, run, gone, words, min_interval)


def read_cancel(table: Table) -> Cancel | None:
    """Read `[….cancel]`."""
    call = read_call(table)
    finished = table.read("finished", _read_codes)
    settles, only_open = table.flag("settles"), table.flag("only_open")
    table.end()
    return None if call is None else Cancel(call, _TOO_LATE if finished is None else finished, settles, only_open)


def read_stream(table: Table) -> Stream | None:
    """Read `[….stream]`."""
    call = read_call(table)
    text, event, end = table.query("text"), table.text("event"), table.read("end", _read_words)
    ended_if, only_if, resumes = table.query("ended_if"), table.query("only_if"), table.flag("resume")
    table.end()
    if end is None and ended_if is None:
        table.faults.append(f"{table.where} must hold end or ended_if: how the provider says that the output is whole")
    if call is not None and call.method != "GET":
        table.fault("call", "must be a GET: a stream is listened to again after a break")
        return None
    return None if call is None else Stream(call, text, event, end or frozenset(), ended_if, only_if, resumes)


def _read_words(value: object) -> frozenset[str]:
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(word, str) and word for word in listed):
        raise ValueError('must be a word, or a list of words: "done", "[DONE]"')
    return frozenset(listed)


def _read_idempotency(table: Table) -> Idempotency | None:
    inner = table.inner("idempotency", 'must be a table: { header = "Idempotency-Key", window = "24h" }')
    if inner is None:
        return None
    header, window = inner.text("header"), inner.duration("window")
    reuse = cast('Literal["replay", "reject"]', inner.choice("reuse", ("replay", "reject")) or "replay")
    rejected_if = inner.query("rejected_if")
    inner.end()
    if header and header_fault(header):
        inner.fault("header", f"{header!r} {header_fault(header)}")
    if reuse == "reject":
        inner.need("rejected_if", what="what tells a refused key from any other refusal, like error.code == 'reused'")
    return Idempotency(header, window or _DEFAULT_WINDOW, reuse, rejected_if)


def _read_gone(table: Table) -> tuple[frozenset[int], frozenset[str]]:
    """The HTTP statuses and the status words that say a run is not known."""
    value = table.take("gone")
    if value is None:
        return _LOST, frozenset()
    listed = value if isinstance(value, list) else [value]
    words = frozenset(fold(item) for item in listed if isinstance(item, str))
    try:
        return _read_codes([item for item in listed if not isinstance(item, str)]), words
    except ValueError as fault:
        table.fault("gone", f"{fault}, or status words")
        return _LOST, words


def _read_codes(value: object) -> frozenset[int]:
    listed = value if isinstance(value, list) else [value]
    if not all(isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 500 for code in listed):
        raise ValueError("must be HTTP statuses from 400 to 499")
    return frozenset(listed)
