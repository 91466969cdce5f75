"""Requests of a mapping: ``POST /generations?limit=10`` and what goes with it, told apart before any value is in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, cast
from urllib.parse import unquote

from jobs.config.faults import suggestion
from jobs.config.mapping.model import Call
from jobs.config.mapping.table import Table, as_text
from jobs.core.templates import Hole, Template

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_BODILESS = ("GET", "DELETE")
_HOW = 'a method and a path, like "POST /generations"'
_MARK = re.compile("\x00([0-9]+)\x00")
_UNFIT = re.compile(r"[\s\x00-\x1f\x7f-\U0010ffff#\\]")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
#: Written by the client itself: from the address, from the body, for the connection.
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "content-type"})


def read_call(table: Table) -> Call | None:
    """Read the request of a section: `call`, `query`, `headers`, `body`, `encoding`."""
    calls = read_calls(table, one=True)
    return calls[0] if calls else None


def read_calls(table: Table, *, one: bool = False) -> tuple[Call, ...]:
    """Read the requests of a section that may name several, which differ in `call` alone.

    Args:
        table: the section.
        one: only one is allowed.
    """
    more = tuple(table.templates("query"))
    headers = read_headers(table)
    body = table.shape("body")
    encoding = cast("Any", table.choice("encoding", ("json", "form")) or "json")
    if not table.need("call", what=_HOW):
        return ()
    lines = table.take("call")
    lines = [lines] if one or not isinstance(lines, list) else lines
    calls = []
    for line in lines:
        read = _read_line(table, line)
        if read is not None:
            method, path, query = read
            calls.append(Call(method, path, (*query, *more), headers, body, encoding))
            if body is not None and method in _BODILESS:
                table.fault("body", f"cannot be sent with {method}; put it into query")
    return tuple(calls)


def read_headers(table: Table) -> dict[str, Template]:
    """Read a table of headers."""
    headers = dict(table.templates("headers"))
    for name in headers:
        fault = header_fault(name)
        if fault:
            table.fault(f"headers.{name}", fault)
    return headers


def header_fault(name: str) -> str | None:
    """Return why a header cannot have this name."""
    if not _HEADER.fullmatch(name):
        return "is no header name; it has letters, digits and -"
    return "is written by the client itself; remove it" if name.lower() in _OWN_HEADERS else None


def _read_line(table: Table, line: object) -> tuple[str, Template, list[tuple[str, Template]]] | None:
    try:
        method, _, address = as_text(line, _HOW).strip().partition(" ")
        if method not in _METHODS:
            meant = suggestion(method, _METHODS) or f"; write {_HOW}"
            raise ValueError(f"begins with {method!r}, which is no method{meant}")
        template = Template.parse(address.strip())
        path, query = _split(template)
    except ValueError as fault:
        table.fault("call", str(fault))
        return None
    table.check("call", template)
    return method, path, query


def _split(template: Template) -> tuple[Template, list[tuple[str, Template]]]:
    """Return path and query. The holes are marks meanwhile, so that no value can take part in the splitting."""
    fixed = "".join(part for part in template.parts if isinstance(part, str))
    if _UNFIT.search(fixed):
        raise ValueError("holds a blank, a # or a character that must be written as %XX")
    flat = _flatten(template)
    path, has_query, query = flat.partition("?")
    if not path.startswith("/"):
        raise ValueError("must name a path that begins with /; where it leads is base_url")
    if any(part in (".", "..") for part in path.split("/")) or "//" in path:
        raise ValueError("must name a path without //, /./ and /../")
    pairs = [_pair(template, text) for text in query.split("&")] if has_query else []
    return _rebuild(template, path), pairs


def _pair(template: Template, text: str) -> tuple[str, Template]:
    name, equals, value = text.partition("=")
    if not name or not equals or "\x00" in name:
        shown = _MARK.sub("${…}", text)
        raise ValueError(f"holds {shown!r} in its query; write name=value, or use query = {{ name = … }}")
    return unquote(name), _rebuild(template, value, fixed=unquote)  # written again with the values in


def _flatten(template: Template) -> str:
    numbers = iter(range(len(template.holes)))
    return "".join(part if isinstance(part, str) else f"\x00{next(numbers)}\x00" for part in template.parts)


def _rebuild(template: Template, flat: str, *, fixed: Callable[[str], str] = str) -> Template:
    return Template(_MARK.sub("${…}", flat), tuple(_parts(template.holes, flat, fixed=fixed)))


def _parts(holes: tuple[Hole, ...], flat: str, *, fixed: Callable[[str], str]) -> Iterator[str | Hole]:
    for number, piece in enumerate(_MARK.split(flat)):
        if number % 2:
            yield holes[int(piece)]
        elif piece:
            yield fixed(piece)
