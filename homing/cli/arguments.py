"""Arguments of commands as values. What cannot be used is a usage error: exit code 2."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from jobs.core.durations import parse_duration

Pairs: TypeAlias = list[str]
#: Every command takes it.
JsonFlag: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def parse_input(text: str) -> dict[str, Any]:
    """Read a job's input: JSON, `@file`, or `@-` for standard input."""
    source = _read(text[1:]) if text.startswith("@") else text
    try:
        value = json.loads(source)
    except ValueError as error:
        raise typer.BadParameter(f"is not JSON: {error}", param_hint="--input") from None
    if not isinstance(value, dict):
        raise typer.BadParameter('must be a JSON object, like {"prompt": "…"}', param_hint="--input")
    return value


def parse_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Read `name=value` pairs."""
    read = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"{pair!r} is not name=value", param_hint="--metadata")
        read[name] = value
    return read


def parse_length(text: str) -> timedelta:
    """Read a duration, like `47m`."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def span(text: str | None) -> float | None:
    """Read a duration as seconds."""
    return None if text is None else parse_length(text).total_seconds()


def _read(name: str) -> str:
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {name}: {error}", param_hint="--input") from None
