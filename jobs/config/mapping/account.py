"""Sections of a mapping that go with every request: who we are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.config.mapping.calls import header_fault
from jobs.config.mapping.model import Auth
from jobs.config.mapping.table import Table

_HOW = "must hold header and value, query and value, or user and password"


def read_auth(table: Table) -> Auth:
    """Read `[….auth]`."""
    before = len(table.faults)
    header, query = table.text("header"), table.text("query")
    value, user, password = (table.template(key) for key in ("value", "user", "password"))
    table.end()
    if header and header_fault(header):
        table.fault("header", f"{header!r} {header_fault(header)}")
    if value and header and not query:
        return Auth(headers={header: value})
    if value and query and not header:
        return Auth(query=((query, value),))
    if user and password:
        return Auth(user=user, password=password)
    if len(table.faults) == before:
        table.faults.append(f"{table.where} {_HOW}")
    return Auth()


def read_values(entry: Mapping[str, Any], *, where: str, faults: list[str]) -> dict[str, object]:
    """Read `[….values]`: plain values that templates may use."""
    value = entry.get("values", {})
    if isinstance(value, dict) and all(isinstance(item, str | int | float | bool) for item in value.values()):
        return value
    faults.append(f'{where}.values must be a table of texts, numbers and booleans: {{ region = "eu" }}')
    return {}
