"""Reads one table of a mapping key by key, and keeps every fault with the path of its key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, TypeVar

from jobs.config.faults import name_faults, suggestion
from jobs.config.mapping.model import Shape
from jobs.config.mapping.names import Names
from jobs.core.durations import parse_duration
from jobs.core.queries import Query
from jobs.core.templates import Template

T = TypeVar("T")


class Table:
    """One table. Each key is asked for once; `end` names those nobody asked for."""

    def __init__(self, where: str, table: dict[str, Any], *, faults: list[str], names: Names) -> None:
        """Keep the table.

        Args:
            where: its path, without a dot at its end.
            table: as TOML holds it.
            faults: what is wrong is added to it.
            names: what its templates may use.
        """
        self.where = where
        self.faults = faults
        self.names = names
        self._table = table
        self._asked: list[str] = []

    def __contains__(self, key: str) -> bool:
        """Whether the key is there; asking so does not make it known."""
        return key in self._table

    def fault(self, key: str, words: str) -> None:
        """Add a fault about a key."""
        self.faults.append(f"{self.where}.{key} {words}")

    def end(self, *, later: Iterable[str] = ()) -> None:
        """Add a fault for each key that means nothing here, or nothing yet."""
        self.faults += name_faults(f"{self.where}.", self._table, known=self._asked, later=later)

    def take(self, key: str) -> Any:
        """Return a key's value as it stands; None where it is absent."""
        self._asked.append(key)
        return self._table.get(key)

    def inner(self, key: str, otherwise: str, *, section: str | None = None) -> Table | None:
        """Return a table inside this one; none where it is absent or something else.

        Args:
            key: the key.
            otherwise: what a person is told where it is no table.
            section: the section it is, whose names its templates know; none: the same as here.
        """
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.fault(key, otherwise)
            return None
        names = self.names.within(section) if section else self.names
        return Table(f"{self.where}.{key}", value, faults=self.faults, names=names)

    def need(self, key: str, *, what: str) -> bool:
        """Whether a key is there; a fault where it is not.

        Args:
            key: the key.
            what: says what belongs there.
        """
        if key in self._table:
            return True
        self._asked.append(key)
        self.fault(key, f"is missing: {what}")
        return False

    def read(self, key: str, parse: Callable[[Any], T]) -> T | None:
        """Return a key's value as `parse` reads it; none where it is absent or cannot be read."""
        value = self.take(key)
        if value is None:
            return None
        try:
            return parse(value)
        except ValueError as fault:
            self.fault(key, str(fault))
            return None

    def query(self, key: str) -> Query | None:
        """Return a JMESPath expression."""
        return self.read(key, lambda value: Query.parse(as_text(value, "a JMESPath expression, like result.id")))

    def text(self, key: str) -> str | None:
        """Return a text that is not empty."""
        return self.read(key, lambda value: as_text(value, "a text"))

    def duration(self, key: str) -> timedelta | None:
        """Return a duration longer than nothing."""
        return self.read(key, _positive_duration)

    def flag(self, key: str) -> bool:
        """Return true or false; false where the key is absent."""
        return self.read(key, _flag) or False

    def choice(self, key: str, known: Iterable[str]) -> str | None:
        """Return one of some words."""
        return self.read(key, lambda value: _choice(value, tuple(known)))

    def template(self, key: str) -> Template | None:
        """Return a template whose names are known."""
        template = self.read(key, lambda value: Template.parse(as_text(value, "a text")))
        if template is not None:
            self.check(key, template)
        return template

    def check(self, key: str, template: Template) -> None:
        """Add a fault for each name of a template that is not known here."""
        for fault in self.names.faults(template):
            self.fault(key, fault)

    def shape(self, key: str) -> Shape | None:
        """Return a body: templates in the place of texts, at any depth."""
        value = self.take(key)
        return None if value is None else self._shape(key, value)

    def templates(self, key: str) -> Iterator[tuple[str, Template]]:
        """Yield each entry of a table of templates; numbers and booleans count as their text."""
        value = self.take(key)
        if value is not None and not isinstance(value, dict):
            self.fault(key, 'must be a table: { name = "value" }')
            return
        for name, item in (value or {}).items():
            shape = self._shape(f"{key}.{name}", item)
            if isinstance(shape, bool):
                shape = Template.parse("true" if shape else "false")
            elif isinstance(shape, int | float):
                shape = Template.parse(str(shape))
            if isinstance(shape, Template):
                yield name, shape
            elif shape is not None:
                self.fault(f"{key}.{name}", "must be a text or a number")

    def _shape(self, path: str, value: object) -> Shape | None:
        match value:
            case dict():
                named = ((name, self._shape(f"{path}.{name}", item)) for name, item in value.items())
                return {name: item for name, item in named if item is not None}
            case list():
                items = [self._shape(f"{path}[{number}]", item) for number, item in enumerate(value)]
                return [item for item in items if item is not None]
            case bool() | int() | float():
                return value
            case str():
                return self._template(path, value)
            case _:
                self.fault(path, "is a date or time; write it as a text")
                return None

    def _template(self, path: str, text: str) -> Template | None:
        try:
            template = Template.parse(text)
        except ValueError as fault:
            self.fault(path, str(fault))
            return None
        self.check(path, template)
        return template


def as_text(value: object, what: str) -> str:
    """Return a text that is not empty.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"must be {what}")
    return value


def _positive_duration(value: object) -> timedelta:
    duration = parse_duration(value)
    if not duration:
        raise ValueError("must be longer than 0")
    return duration


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("must be true or false")


def _choice(value: object, known: tuple[str, ...]) -> str:
    if value in known:
        return str(value)
    raise ValueError(f"{value!r} is unknown{suggestion(str(value), known) or '; known: ' + ', '.join(known)}")
