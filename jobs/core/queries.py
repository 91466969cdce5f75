"""JMESPath as a mapping writes it: checked when it is read, harmless when it is asked.

Two functions are added to the standard ones: ``omit(object, name, …)`` is an object without some of its fields, and
``first(value, …)`` the first of its arguments that is not null. Whatever an answer holds, a query finds a value or
finds nothing; it never raises.

Source: https://jmespath.org/specification.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from jmespath import functions
from jmespath.exceptions import EmptyExpressionError, JMESPathError, ParseError
from jmespath.parser import ParsedResult, Parser
from jmespath.visitor import Options

from jobs.core.errors import Unusable
from jobs.core.suggestions import did_you_mean
from jobs.core.text import canonical_json

Node: TypeAlias = Mapping[str, Any]

#: What reads the document itself, not a part of it.
_WHOLE = frozenset({"current", "identity"})


class _Functions(functions.Functions):
    """The standard functions and ours."""

    @functions.signature({"types": ["object"]}, {"types": ["string"], "variadic": True})
    def _func_omit(self, whole: Mapping[str, Any], *names: str) -> dict[str, Any]:
        return {name: value for name, value in whole.items() if name not in names}

    @functions.signature({"types": [], "variadic": True})
    def _func_first(self, *values: Any) -> Any:
        return next((value for value in values if value is not None), None)


#: What may make a number that JSON does not have out of those it has.
_COMPUTING = frozenset({"to_number", "sum", "avg"})
_OPTIONS = Options(custom_functions=_Functions())


@dataclass(frozen=True, slots=True)
class Query:
    """An expression over one JSON document. Build it by `Query.parse`."""

    text: str
    _parsed: ParsedResult = field(repr=False, compare=False)
    _computes: bool = field(default=False, repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Query:
        """Read an expression.

        Raises:
            ValueError: what is wrong with it, and at which character, as the end of a sentence.
        """
        try:
            parsed = Parser().parse(text)
        except EmptyExpressionError:
            raise ValueError("is empty; write a JMESPath expression, like result.id") from None
        except ParseError as error:
            raise ValueError(f"is not JMESPath: {_place(error, text)}") from None
        except JMESPathError as error:
            raise ValueError(f"is not JMESPath: {error}") from None
        _check_functions(parsed.parsed)
        return cls(text, parsed, any(name in _COMPUTING for name, _count in _calls(parsed.parsed)))

    def find(self, document: object) -> Any:
        """Return what the document holds there; None where it holds nothing, or not what the expression needs."""
        try:
            found = self._parsed.search(document, options=_OPTIONS)
            if self._computes:
                canonical_json(found)
        except (JMESPathError, Unusable, ArithmeticError, TypeError, ValueError, AttributeError, RecursionError):
            return None
        return found

    def is_true(self, document: object) -> bool:
        """Whether it holds, as JMESPath counts: null, false, and what is empty do not; 0 does."""
        found = self.find(document)
        return found is not None and found is not False and found not in ("", [], {})

    def roots(self) -> Iterator[tuple[str | None, str | None]]:
        """Yield each field of the document that is read, with the field read inside it.

        A first item of None means the document as a whole; a second one, the field as a whole.
        """
        yield from _roots(self._parsed.parsed)


def _place(error: ParseError, text: str) -> str:
    position = int(error.lex_position)
    if position >= len(text):
        return f"it ends too early, after {text[-20:]!r}"
    return f"unexpected {text[position : position + 20]!r} at character {position + 1} of {text!r}"


def _check_functions(node: Node) -> None:
    for name, count in _calls(node):
        known = _Functions.FUNCTION_TABLE
        if name not in known:
            meant = did_you_mean(name, known)
            raise ValueError(f"calls {name}(), which is unknown" + (f"; did you mean {meant}?" if meant else ""))
        signature = known[name]["signature"]
        is_open = bool(signature) and bool(signature[-1].get("variadic"))
        if count < len(signature) or (count > len(signature) and not is_open):
            raise ValueError(f"calls {name}() with {count} arguments; it takes {len(signature)}")


def _calls(node: Node) -> Iterator[tuple[str, int]]:
    if node["type"] == "function_expression":
        yield str(node["value"]), len(node["children"])
    for child in node["children"]:
        if isinstance(child, Mapping):
            yield from _calls(child)


def _roots(node: Node) -> Iterator[tuple[str | None, str | None]]:
    kind, children = node["type"], node["children"]
    if kind == "field":
        yield str(node["value"]), None
    elif kind in _WHOLE:
        yield None, None
    elif kind == "subexpression" and children[0]["type"] == "field":
        inner = children[1]
        yield str(children[0]["value"]), str(inner["value"]) if inner["type"] == "field" else None
    elif kind in _NARROWING:
        yield from _roots(children[0])
    elif kind != "expref":  # whose field is one of its argument's
        for child in children:
            yield from _roots(child)


#: Their first child is asked of the document; the others of what that found.
_NARROWING = frozenset(
    {"subexpression", "index_expression", "projection", "value_projection", "filter_projection", "flatten", "pipe"}
)
