"""Text and JSON from outside, made safe: strict to read, clean to store, one form to compare.

JSON may carry an escaped U+0000 or half of a surrogate pair; databases refuse them, and one such value would
fail the whole batch it is in. Deep nesting and numbers beyond a double break whoever reads them next. None
of that may escape from here as anything but `Unusable`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import NoReturn, TypeAlias, TypeVar, cast

from jobs.core.errors import Unusable

T = TypeVar("T")
_Put: TypeAlias = Callable[[object], None]
_Todo: TypeAlias = tuple[object, _Put]

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"

#: Strings whole, else one bracket. Possessive, and an unclosed string runs to the end: linear on any input.
_STRINGS_AND_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
#: Integers up to this many digits fit a double; longer ones are looked at.
_SAFE_DIGITS = 308


def decode_json(raw: bytes, *, max_depth: int = 64) -> object:
    """Read JSON strictly: UTF-8, no NaN or Infinity, no raw control characters; the last of equal keys wins.

    Args:
        raw: the bytes as received.
        max_depth: how deep arrays and objects may nest.

    Raises:
        Unusable: the reason, without a word of the content.
    """
    if _depth(raw, enough=max_depth) > max_depth:
        raise Unusable(f"nested deeper than {max_depth} levels")
    try:
        return _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise Unusable("not UTF-8") from None
    except json.JSONDecodeError as fault:
        raise Unusable(f"not JSON: {fault.msg} at character {fault.pos}") from None
    except RecursionError:
        raise Unusable("nested too deeply") from None


def decode_clean_json(raw: bytes, *, max_depth: int = 64) -> object:
    """Read JSON as `decode_json`, and clean it.

    What no database stores can only have been spelled as an escape: without one there is nothing to clean.

    Raises:
        Unusable: as `decode_json`.
    """
    value = decode_json(raw, max_depth=max_depth)
    return clean(value) if rb"\u" in raw else value


def clean(value: T) -> T:
    """Return the value with U+0000 and lone surrogates as U+FFFD, in every text, keys included.

    Lists and dicts are copied, to any depth; anything else is returned as it is.
    """
    result: list[object] = [None]
    todo: list[_Todo] = [(value, partial(result.__setitem__, 0))]
    while todo:
        item, put = todo.pop()
        if isinstance(item, str):
            put(_UNSTORABLE.sub(_REPLACEMENT, item))
        elif isinstance(item, dict):
            todo += _open_dict(item, put)
        elif isinstance(item, list | tuple):
            todo += _open_list(item, put)
        else:
            put(item)
    return cast("T", result[0])


def canonical_json(value: object) -> bytes:
    """Return the one way to write a JSON value: keys sorted, no blanks, ASCII.

    `1`, `1.0` and `true` are three values; the order of keys is none.

    Raises:
        Unusable: nested too deeply to be written, or NaN or Infinity, which JSON does not have.
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (ValueError, RecursionError):
        raise Unusable("cannot be written as JSON") from None


def fingerprint(value: object) -> str:
    """Return the SHA-256 of the canonical form, in hex: equal for equal requests, however they were typed.

    Raises:
        Unusable: as `canonical_json`.
    """
    return hashlib.sha256(canonical_json(value)).hexdigest()


def excerpt(raw: bytes, *, limit: int = 200) -> str:
    """Return the first bytes as printable text on one line, for a log or a person."""
    text = raw[:limit].decode("utf-8", "replace")
    printable = "".join(char if char.isprintable() else " " for char in text)
    return printable.strip() + ("…" if len(raw) > limit else "")


def _depth(raw: bytes, *, enough: int) -> int:
    """Return how deep the brackets nest, counting no further than `enough`. The parser would recurse."""
    if raw.count(b"[") + raw.count(b"{") <= enough:
        return 0
    depth = deepest = 0
    for match in _STRINGS_AND_BRACKETS.finditer(raw):
        token = raw[match.start()]
        if token in b"[{":
            depth += 1
            deepest = max(deepest, depth)
            if deepest > enough:
                break
        elif token in b"]}":
            depth -= 1
    return deepest


def _refuse_constant(name: str) -> NoReturn:
    raise Unusable(f"{name} is not JSON")


def _read_int(digits: str) -> int:
    if len(digits) > _SAFE_DIGITS:  # also keeps the quadratic conversion of huge numbers away
        _read_float(digits)
    return int(digits)


def _read_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise Unusable("a number is beyond the range of a double")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_read_int, parse_float=_read_float)


def _open_dict(item: dict[object, object], put: _Put) -> Iterable[_Todo]:
    copy: dict[object, object] = {}
    put(copy)
    inner = []
    for key, child in item.items():
        cleaned = _UNSTORABLE.sub(_REPLACEMENT, key) if isinstance(key, str) else key
        copy[cleaned] = None  # keeps the order of keys, whatever order the children are done in
        inner.append((child, partial(copy.__setitem__, cleaned)))
    return inner[::-1]


def _open_list(item: list[object] | tuple[object, ...], put: _Put) -> Iterable[_Todo]:
    copy: list[object] = [None] * len(item)
    put(copy)
    return [(child, partial(copy.__setitem__, index)) for index, child in enumerate(item)]
