"""A mapping's requests, filled in with one job's values.

Nothing a job brings can change where a request goes or what belongs to it: the address is the entry's own, values in
a path or a query are encoded, and a value that no header can carry is refused before anything is sent.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import quote

from jobs.config.mapping.model import Call, ProviderMapping, Shape
from jobs.core.errors import Permanent
from jobs.core.templates import Template, Values, as_text, write_segment
from jobs.providers.calls import JSON_TYPE, dump

Pairs: TypeAlias = "tuple[tuple[str, Template], ...]"

_FORM_TYPE = "application/x-www-form-urlencoded"


class Unsendable(Permanent):
    """A value cannot stand where the mapping puts it. Nothing was sent."""

    slug = "unsendable"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request as it goes on the wire; its headers hold the credential, so they are never shown."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)


class Requests:
    """Fills in the requests of one account."""

    def __init__(self, mapping: ProviderMapping, url: str) -> None:
        """Keep what goes with every request.

        Args:
            mapping: the account's.
            url: its address, without a slash at its end.
        """
        self._mapping = mapping
        self._url = url
        self._account: Values = {"secret": dict(mapping.secrets), "values": dict(mapping.values)}

    def prepare(self, call: Call, values: Values, *, headers: Mapping[str, str] | None = None) -> Prepared:
        """Fill in a request.

        Args:
            call: the request.
            values: of the job, by the names templates use.
            headers: beside the mapping's own.

        Raises:
            MissingValue: A text needs a value that is absent.
            Unsendable: A value cannot stand where the mapping puts it.
        """
        known = {**self._account, **values}
        body, content_type = _body(call, known)
        typed = {} if body is None else {"Content-Type": content_type}
        query = "&".join([*_pairs(call.query, known), *_pairs(self._mapping.auth.query, known)])
        return Prepared(
            call.method,
            self._url + _path(call.path, known) + (f"?{query}" if query else ""),
            {**self._headers(call, known), **(headers or {}), **typed},
            body,
        )

    def _headers(self, call: Call, values: Values) -> dict[str, str]:
        """Those of the account and those of the request, which win whatever the case of their names."""
        auth, named = self._mapping.auth, {}
        for name, template in (*self._mapping.headers.items(), *auth.headers.items(), *call.headers.items()):
            value = template.value(values)
            if value is not None:
                named[name.lower()] = (name, header_value(name, as_text(value)))
        if auth.user is not None and auth.password is not None:
            pair = f"{auth.user.write(values)}:{auth.password.write(values)}".encode()
            named.setdefault("authorization", ("Authorization", f"Basic {base64.b64encode(pair).decode()}"))
        return dict(named.values())


def header_value(name: str, text: str) -> str:
    """Return a text that a header can carry.

    Raises:
        Unsendable: it is none: a line break would begin another header.
    """
    if not text.isascii() or not text.isprintable():
        raise Unsendable(f"the header {name} cannot carry this value: it holds more than visible ASCII characters")
    return text.strip()


def _path(template: Template, values: Values) -> str:
    path = template.write(values, write_segment)
    if any(segment in (".", "..") for segment in path.split("/")):
        raise Unsendable("a part of the path would be folded away")
    return path


def _pairs(pairs: Pairs, values: Values) -> Iterator[str]:
    for name, template in pairs:
        found = template.value(values)
        for item in found if isinstance(found, list) else [found]:
            if item is not None:
                yield f"{_encoded(name)}={_encoded(item)}"


def _body(call: Call, values: Values) -> tuple[bytes | None, str]:
    if call.body is None:
        return None, JSON_TYPE
    content = _filled(call.body, values)
    if call.encoding == "json":
        return dump({} if content is None else content), JSON_TYPE
    if not isinstance(content, dict):
        raise Unsendable("a form is an object of fields")
    return "&".join(_fields(content)).encode(), _FORM_TYPE


def _fields(content: Mapping[str, Any]) -> Iterator[str]:
    for name, value in content.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                yield f"{_encoded(name)}={_encoded(item)}"


def _filled(shape: Shape, values: Values) -> Any:
    """A body with its values in; what has none is left out of its table or list."""
    if isinstance(shape, Template):
        return shape.value(values)
    if isinstance(shape, dict):
        named = ((name, _filled(child, values)) for name, child in shape.items())
        return {name: value for name, value in named if value is not None}
    if isinstance(shape, list):
        return [value for child in shape if (value := _filled(child, values)) is not None]
    return shape


def _encoded(value: Any) -> str:
    return quote(as_text(value), safe="", errors="replace")
