"""Refused requests judged again, by today's secrets and at the instant they came.

What passes is taken out of the quarantine and put into the inbox in one transaction, exactly like a fresh delivery:
deduplicated against what came meanwhile, applied by the same drain. What does not pass stays until it is too old. So a
recheck may be repeated, or run twice at once, and brings each event in once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import structlog

from jobs.broker import DRAIN
from jobs.core.errors import Conflict, JobsError, SignatureError, TooLarge
from jobs.services.runtime import ProviderEntry, Runtime
from webhooks.incoming.events import NewEvent
from webhooks.incoming.receiving.admission import Admission, Sent
from webhooks.incoming.receiving.ingest import store_events
from webhooks.incoming.receiving.quarantine_rows import drop_old, list_refused, take_refused
from webhooks.incoming.schema import InboxStatus

#: Rows read, proven and stored at a time: at most 25 MiB in memory, and SQLite's writer is held for milliseconds.
_BATCH = 100

_log = structlog.get_logger(__name__)


def recheck(runtime: Runtime, admission: Admission, name: str) -> dict[str, Any]:
    """Judges a provider's refused requests again.

    Returns:
        ``checked``, how many are ``refused`` still, and how many came in, in all (``taken``) and by what became of
        them (``accepted``, ``duplicate``, ``conflict``, ``ignored``, ``quarantined``).

    Raises:
        Conflict: The provider has no secret to hold anything against.
        Unavailable: Its key set, or the database, is away.
    """
    entry = runtime.provider(name)
    if entry.config.key_set_url is None and not entry.config.webhook_secrets:
        raise Conflict(f"provider {name!r} has no webhook secret to hold its requests against")
    admission.secrets_of(entry)
    counts: Counter[str] = Counter()
    for rows in _batches(runtime, name):
        passed = dict(_passing(entry, admission, rows))
        counts["checked"] += len(rows)
        counts["refused"] += len(rows) - len(passed)
        counts.update(_take_in(runtime, passed))
    if counts[InboxStatus.ACCEPTED]:
        runtime.broker.publish(DRAIN)
    _log.info("refused requests checked again", provider=name, **counts)
    return _document(name, counts)


def _batches(runtime: Runtime, name: str) -> Iterator[list[dict[str, Any]]]:
    with runtime.database.write() as tx:
        drop_old(tx)
    after = ""
    while True:
        with runtime.database.read() as tx:
            rows = list_refused(tx, name, after=after, limit=_BATCH)
        if not rows:
            return
        yield rows
        after = rows[-1]["id"]


def _passing(
    entry: ProviderEntry, admission: Admission, rows: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, NewEvent]]:
    for row in rows:
        sent = Sent(row["token"], row["target"], row["headers"], bytes(row["raw"]))
        try:
            yield row["id"], admission.admit(entry, sent, at=row["received_at"], kept=True)
        except (SignatureError, TooLarge):
            continue


def _take_in(runtime: Runtime, passed: Mapping[str, NewEvent]) -> Counter[str]:
    if not passed:
        return Counter()
    with runtime.database.write() as tx:
        taken = take_refused(tx, sorted(passed))
        stored = store_events(tx, [event for row_id, event in passed.items() if row_id in taken]) if taken else []
    return Counter({"taken": len(stored), **Counter(each.status for each in stored)})


def recheck_after_new_keys(runtime: Runtime, admission: Admission, url: str) -> None:
    """A sender has published a new key: what was signed with it before we knew is brought in. Never raises."""
    for name, entry in runtime.providers.items():
        if entry.config.key_set_url == url:
            try:
                recheck(runtime, admission, name)
            except JobsError as error:
                _log.warning("refused requests were not checked again", provider=name, reason=error.detail)


def _document(name: str, counts: Mapping[str, int]) -> dict[str, Any]:
    outcomes = ("accepted", "duplicate", "conflict", "ignored", "quarantined")
    return {"provider": name, **{key: counts.get(key, 0) for key in ("checked", "taken", "refused", *outcomes)}}
