"""Answers to those who listen to a run's output, in whatever dialect they came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from wsgiref.types import WSGIEnvironment

from flask import Response, request

from homing.simulator import answers
from homing.simulator.calls import Wording, find_run
from homing.simulator.faults import Fault
from homing.simulator.provider import Provider
from homing.simulator.run import Run
from homing.simulator.streams import STREAMING_MODEL, BrokenStreamError, Piece, follow, trouble_of

#: Writes what is told of a run as its dialect words it; it ends with the dialect's own word for the end.
Write = Callable[[Run, Iterator[Piece | None]], Iterator[str]]

COMMENT = ": there is more to come\n\n"


def listen(provider: Provider, run_id: str, *, wording: Wording, write: Write, after: int | None) -> Response:
    """Tell a run's output from after the piece of a number; None: the number made no sense."""
    run = find_run(provider, run_id, dialect=wording.dialect)
    if run is None or run.order.model != STREAMING_MODEL:
        provider.ledger.record_stream(run_id=run_id, answer=404)
        return wording.error(404, "not_found", "there is no such stream")
    if after is None:
        provider.ledger.record_stream(run_id=run_id, answer=400)
        return wording.error(400, "invalid_request", "there is no such place in the stream")
    fault = trouble_of(run, earlier=provider.runs.count_listener(run), after=after)
    provider.ledger.record_stream(run_id=run_id, answer=200, after=after, fault=fault)
    return tell(provider, run, write=write, after=after, fault=fault)


def tell(provider: Provider, run: Run, *, write: Write, after: int = 0, fault: Fault | None = None) -> Response:
    """A run's output as it is made, to whoever asked the request at hand."""
    told = write(run, follow(provider, run, after=after, fault=fault))
    answer = Response(_until_it_breaks(told, request.environ), mimetype="text/event-stream")
    answer.headers["Cache-Control"] = "no-store"
    return answer


def read_place(text: str | None) -> int | None:
    """The number of a piece, as a client gives it back; 0 where it gave none, None where it makes no sense."""
    if not text:
        return 0
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def event(name: str, data: str, *, event_id: str | None = None) -> str:
    """One server-sent event; a text of several lines stays one."""
    lines = [f"event: {name}", *([f"id: {event_id}"] if event_id is not None else [])]
    lines += [f"data: {line}" for line in data.split("\n")]
    return "\n".join(lines) + "\n\n"


def _until_it_breaks(told: Iterator[str], environ: WSGIEnvironment) -> Iterator[str]:
    try:
        yield from told
    except BrokenStreamError:
        answers.cut_connection(environ)
