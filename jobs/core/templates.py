"""``${…}`` in a mapping: what a request says with the values of one job.

A template that is exactly one ``${…}`` keeps the value's JSON type; inside a text the value is written as text.
What stands between the braces is a JMESPath expression over the values. ``$${`` is a plain ``${``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote

from jobs.core.errors import Permanent
from jobs.core.queries import Query

Values: TypeAlias = Mapping[str, Any]
#: How a value is written, and whether its slashes stay.
Writer: TypeAlias = Callable[[str, bool], str]

_OPEN, _ESCAPED = "${", "$${"
_QUOTES = "'\"`"


class MissingValue(Permanent):
    """A text cannot be written: a value it needs is absent or null."""

    slug = "missing-value"


@dataclass(frozen=True, slots=True)
class Hole:
    """One ``${…}``; ``${+…}`` keeps the slashes of its value where it stands in a path (as in RFC 6570)."""

    query: Query
    keeps_slashes: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """A text with holes. Build it by `Template.parse`."""

    text: str
    parts: tuple[str | Hole, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Read a template.

        Raises:
            ValueError: what is wrong with it, as the end of a sentence.
        """
        return cls(text, tuple(_parts(text)))

    @property
    def holes(self) -> tuple[Hole, ...]:
        """Its ``${…}`` in order."""
        return tuple(part for part in self.parts if isinstance(part, Hole))

    def value(self, values: Values) -> Any:
        """Return the JSON value: of any type where the template is one hole, else text.

        None where it is one hole, and what that asks for is absent or null.

        Raises:
            MissingValue: A hole inside a text has nothing to say.
        """
        if len(self.parts) == 1 and isinstance(self.parts[0], Hole):
            return self.parts[0].query.find(values)
        return self.write(values)

    def write(self, values: Values, writer: Writer = lambda text, _keeps: text) -> str:
        """Return the text.

        Args:
            values: what the holes are asked of.
            writer: how each hole's value is written; the fixed parts stay as they are.

        Raises:
            MissingValue: A hole has nothing to say.
        """
        written = []
        for part in self.parts:
            written.append(part if isinstance(part, str) else writer(_text_of(part, values), part.keeps_slashes))
        return "".join(written)


def write_segment(text: str, keeps_slashes: bool) -> str:
    """Write a value into a path, which it cannot leave: what would end, fold or split a segment is encoded.

    Raises:
        MissingValue: it would leave a segment empty.
    """
    segments = text.split("/") if keeps_slashes else [text]
    if not all(segments):
        raise MissingValue("a part of the path would be empty")
    return "/".join(quote(segment, safe="", errors="replace") for segment in segments)


def _text_of(hole: Hole, values: Values) -> str:
    found = hole.query.find(values)
    if found is None:
        raise MissingValue(f"{hole.query.text} is missing")
    return as_text(found)


def as_text(value: Any) -> str:
    """Return a JSON value as it reads inside a text: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _parts(text: str) -> Iterator[str | Hole]:
    plain, at = "", 0
    while at < len(text):
        if text.startswith(_ESCAPED, at):
            plain, at = plain + _OPEN, at + len(_ESCAPED)
        elif text.startswith(_OPEN, at):
            if plain:
                yield plain
            end = _end_of_hole(text, at + len(_OPEN))
            yield _hole(text[at + len(_OPEN) : end])
            plain, at = "", end + 1
        else:
            plain, at = plain + text[at], at + 1
    if plain or not text:
        yield plain


def _hole(text: str) -> Hole:
    keeps_slashes = text.startswith("+")
    expression = text.removeprefix("+").strip()
    if not expression:
        raise ValueError("holds an empty ${}; name a value, like ${input.prompt}")
    try:
        return Hole(Query.parse(expression), keeps_slashes)
    except ValueError as fault:
        raise ValueError(f"holds ${{{expression}}}, which {fault}") from None


def _end_of_hole(text: str, start: int) -> int:
    """Return where the brace closes: braces nest, and do not count inside quotes."""
    depth, quoted, at = 1, "", start
    while at < len(text):
        char = text[at]
        if quoted:
            at += char == "\\"
            quoted = "" if char == quoted else quoted
        elif char in _QUOTES:
            quoted = char
        elif char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return at
        at += 1
    raise ValueError(f"opens ${{ at character {start - 1} and never closes it")
