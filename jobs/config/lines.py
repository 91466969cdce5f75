"""Where a key stands in a TOML file: a fault that names its line is half mended.

The text has been read by ``tomllib`` before, so it is known to be TOML; here only its keys are found again. A key
inside an inline table is where that table begins.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY = re.compile(rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*")
_BLANK = re.compile(r"(?:[ \t\r\n]|\#[^\n]*)*")
#: What a value is made of: texts of four kinds, comments, brackets, line ends, anything else.
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|'
    r"'''.*?'{3,5}|"
    r'"(?:[^"\\\n]|\\.)*"|'
    r"'[^'\n]*'|"
    r"\#[^\n]*|[\[{]|[\]}]|\n|[^\"'\#\[\]{}\n]+|.",
    re.DOTALL,
)


def key_lines(text: str) -> Mapping[Path, int]:
    """Return the line of each key and table header, counted from 1."""
    lines: dict[Path, int] = {}
    for path, at in _keys(text):
        lines.setdefault(path, text.count("\n", 0, at) + 1)
    return lines


def with_lines(faults: Iterable[str], *, text: str, name: str) -> list[str]:
    """Return faults in the order of the file, the line of the key each begins with in front of it.

    Args:
        faults: sentences that begin with a key's path, as `providers.acme.submit.call is missing`.
        text: the file's.
        name: the file's, as a person knows it.
    """
    lines = {".".join(path): line for path, line in key_lines(text).items()}
    placed = [(next((lines[place] for place in _places(fault) if place in lines), 0), fault) for fault in faults]
    placed.sort(key=lambda item: item[0])
    return [f"{name}:{line}: {fault}" if line else f"{name}: {fault}" for line, fault in placed]


def _places(fault: str) -> Iterator[str]:
    """What a fault may begin with, the longest first: every cut before a dot, a bracket, a colon or a blank.

    `webhook_header` may also be written as `header` in the section `webhook`.
    """
    for cut in reversed([match.start() for match in re.finditer(r"[.\[: ]|$", fault)]):
        yield fault[:cut]
        yield fault[:cut].replace(".webhook_", ".webhook.")


def _keys(text: str) -> Iterator[tuple[Path, int]]:
    table: Path = ()
    at = _skip_blank(text, 0)
    while at < len(text):
        if text[at] == "[":
            start = _skip_blank(text, at + (2 if text.startswith("[[", at) else 1))
            found = _KEY.match(text, start)
            if found is None:
                return
            table = _parts(found[0])
            yield table, at
            at = text.find("\n", found.end())
        else:
            found = _KEY.match(text, at)
            if found is None:
                return
            yield (*table, *_parts(found[0])), at
            at = _end_of_value(text, found.end())
        at = len(text) if at < 0 else _skip_blank(text, at)


def _end_of_value(text: str, at: int) -> int:
    """Where the line ends on which a value does; brackets and texts may go over several."""
    depth = 0
    for token in _TOKEN.finditer(text, at):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        elif token[0] == "\n" and depth == 0:
            return token.start()
    return len(text)


def _parts(key: str) -> Path:
    """A dotted key's parts, unquoted."""
    return tuple(_unquoted(part) for part in re.findall(_PART, key))


def _unquoted(part: str) -> str:
    return next(iter(tomllib.loads(f"{part} = 0"))) if part[0] in "\"'" else part


def _skip_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
