"""Reads a whole mapping: every section, every mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from jobs.config.mapping.account import read_auth, read_values
from jobs.config.mapping.calls import read_headers
from jobs.config.mapping.events import read_artifacts, read_webhook
from jobs.config.mapping.model import Artifacts, Auth, ProviderMapping
from jobs.config.mapping.names import Names
from jobs.config.mapping.requests import read_cancel, read_search, read_status, read_stream, read_submit
from jobs.config.mapping.table import Table

#: The keys of an entry that describe its provider.
SECTIONS = (
    "auth", "headers", "secrets", "values", "submit", "search", "status", "cancel", "stream", "webhook", "artifacts",
)  # fmt: skip
_Read = TypeVar("_Read")
_NEEDED = {
    "submit": "how a run is begun, with call and id",
    "status": "how a run is read, with call, state and states",
}


def read_mapping(
    entry: Mapping[str, Any],
    *,
    where: str,
    secrets: Mapping[str, str | None],
    scheme: str,
    faults: list[str],
) -> ProviderMapping | None:
    """Read the sections of an entry.

    Args:
        entry: the provider's table, a preset's keys put in.
        where: its path.
        secrets: by the name templates give them; None where one was given and could not be had.
        scheme: how its events are signed.
        faults: what is wrong is added to it.

    Returns:
        The mapping; none where a section that is needed cannot be used. It is only good where no fault was added.
    """
    values = read_values(entry, where=where, faults=faults)
    names = Names(frozenset(secrets), frozenset(values))
    top = Table(where, {**entry}, faults=faults, names=names)
    sections = {name: _section(top, name) for name in SECTIONS if name not in ("headers", "secrets", "values")}
    had = {name: text for name, text in secrets.items() if text is not None}
    return _read(top, sections, scheme=scheme, secrets=had, values=values)


def _read(
    top: Table,
    sections: Mapping[str, Table | None],
    *,
    scheme: str,
    secrets: dict[str, str],
    values: dict[str, object],
) -> ProviderMapping | None:
    artifacts, urls = read_artifacts(part) if (part := sections["artifacts"]) else (Artifacts(), None)
    submit = _if_there(sections["submit"], read_submit)
    status = _if_there(sections["status"], partial(read_status, urls=urls))
    search = _if_there(sections["search"], read_search)
    cancel = _if_there(sections["cancel"], read_cancel)
    stream = _if_there(sections["stream"], read_stream)
    run_id = (status.id if status else None) or (submit.id if submit else None)
    events = partial(read_webhook, status=status, run_id=run_id, scheme=scheme)
    webhook = _if_there(sections["webhook"], events)
    auth, headers = _if_there(sections["auth"], read_auth) or Auth(), read_headers(top)
    if submit is None or status is None:
        return None
    return ProviderMapping(
        submit=submit,
        status=status,
        search=search,
        cancel=cancel,
        stream=stream,
        webhook=webhook,
        artifacts=artifacts,
        auth=auth,
        headers=headers,
        secrets=secrets,
        values=values,
    )


def _if_there(section: Table | None, read: Callable[[Table], _Read | None]) -> _Read | None:
    return read(section) if section else None


def _section(top: Table, name: str) -> Table | None:
    """A section as a table whose templates know what is known there."""
    if name in _NEEDED:
        top.need(name, what=_NEEDED[name])
    return top.inner(name, f"must be a table: [{top.where}.{name}]", section=name)
