"""Sections of a mapping about what comes back by itself: webhook, artifacts."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast

from jobs.config.mapping.model import Artifacts, RunShape, Status, Webhook
from jobs.config.mapping.shapes import inside, read_shape, within
from jobs.config.mapping.table import Table
from jobs.config.signing import SCHEME_SETTINGS
from jobs.core.queries import Query

#: Keys of `[….webhook]` that are settings of the signature; read with the entry's own keys.
SIGNATURE_KEYS = ("scheme", *(name.removeprefix("webhook_") for name in SCHEME_SETTINGS))
#: Keys of `[….artifacts]` that say what may be stored; read with the entry's own keys.
RULE_KEYS = ("types", "max_bytes")
#: What is signed so proves nothing about a body.
_UNBOUND_SCHEMES = frozenset({"none", "shared-secret"})


def read_artifacts(table: Table) -> tuple[Artifacts, Query | None]:
    """Read `[….artifacts]`: how long links are good, and where they are."""
    urls, expires = table.query("urls"), table.duration("expires")
    refresh = cast('Literal["status"] | None', table.choice("refresh", ("status",)))
    table.need("urls", what="a JMESPath expression that finds the links to result files")
    for key in RULE_KEYS:
        table.take(key)
    table.end()
    return Artifacts(expires, refresh), urls


def read_webhook(table: Table, *, status: Status | None, run_id: Query | None, scheme: str) -> Webhook | None:
    """Read `[….webhook]`.

    Args:
        table: the section.
        status: how a run is read; its words hold here too.
        run_id: where a run's id stands in the run.
        scheme: how events are signed.
    """
    for key in SIGNATURE_KEYS:
        table.take(key)
    run, trust = table.query("run"), table.choice("trust", ("state", "hint"))
    job_id, delivery_id = table.query("job_id"), table.query("delivery_id")
    only_if, token, urls = table.query("only_if"), table.query("token"), table.query("artifacts")
    shape = _read_event_shape(table, status=status, run=run, urls=urls)
    table.end()
    if "run" not in table:
        table.need("job_id", what="a JMESPath expression that finds the run's id in an event")
    job_id = job_id or inside(run, run_id)
    if shape is None or status is None or job_id is None:
        return None
    is_hint = scheme in _UNBOUND_SCHEMES or not _says_as_much(shape, status.run)
    if trust is not None:
        is_hint = trust == "hint"
    return Webhook(job_id, shape, delivery_id, only_if, token, is_hint, is_trusted=trust == "state")


def _read_event_shape(table: Table, *, status: Status | None, run: Query | None, urls: Query | None) -> RunShape | None:
    """How an event tells of a run: as a status read would where it carries the whole run, else as the section says."""
    if "run" not in table:
        table.need("state", what="a JMESPath expression that finds the status word in an event")
    if status is None:  # the words cannot be known; the section's own mistakes are still told
        read_shape(table, urls=urls, preset=RunShape(Query.parse("status"), {}))
        return None
    preset = within(run, status.run) if run else RunShape(status.run.state, status.run.states)
    shape = read_shape(table, urls=urls, preset=preset)
    return replace(shape, urls=urls) if shape and urls else shape


def _says_as_much(event: RunShape, status: RunShape) -> bool:
    """Whether an event brings what a status read would: else a success it tells would come home without its result."""
    return (event.output is not None or status.output is None) and (event.urls is not None or status.urls is None)
